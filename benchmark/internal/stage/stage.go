// Package stage sets up what an experiment runs on: a Redis Cluster and a
// RabbitMQ virtual host of its own, the seeded tables, guard-monitor, several
// instances of the service, and nginx. All of it is real, and all of it is taken
// down again, whatever happens.
package stage

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/belaygo/belay/benchmark/internal/shop"
)

// Config describes a Stage.
type Config struct {
	Servers   Servers
	Rows      int64
	Instances int
	Nginx     bool
	Control   string // address that nginx passes /killed to; "" = none
	Pool      int    // database connections of each instance
	Out       io.Writer
}

// A Stage is ready for requests. Its methods are not safe for concurrent use
// unless they say so.
type Stage struct {
	Cluster *Cluster
	DB      *sql.DB // of the seeded database, for the audit
	Addrs   []string

	cfg     Config
	root    string
	dir     string
	amqp    string // URL with the virtual host
	monitor string // URL of guard-monitor
	nginx   *Nginx
	started []*Process
	closers []func(context.Context) error
}

const auditConnections = 4

// Open sets everything up. Progress is told on cfg.Out.
func Open(ctx context.Context, cfg Config) (s *Stage, err error) {
	s = &Stage{cfg: cfg}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if s.dir, err = os.MkdirTemp("", "belay-benchmark-"); err != nil {
		return s, err
	}
	s.later(func(context.Context) error { return os.RemoveAll(s.dir) })
	if s.root, err = findRoot(); err != nil {
		return s, err
	}
	for _, step := range []struct {
		say string
		do  func(context.Context) error
	}{
		{"checking the tables", s.openDatabase},
		{"starting a redis cluster", s.openCluster},
		{"starting guard-monitor", s.openMonitor},
		{"starting " + strconv.Itoa(cfg.Instances) + " instances", s.openInstances},
		{"starting nginx", s.openNginx},
	} {
		fmt.Fprintln(cfg.Out, step.say)
		if err := step.do(ctx); err != nil {
			return s, fmt.Errorf("%s: %w", step.say, err)
		}
	}
	return s, nil
}

// later has f called by Close, before what was named earlier.
func (s *Stage) later(f func(context.Context) error) { s.closers = append(s.closers, f) }

// Close takes everything down.
func (s *Stage) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	fmt.Fprintln(s.cfg.Out, "stopping all that was started")
	var errs []error
	for _, f := range slices.Backward(s.closers) {
		errs = append(errs, f(ctx))
	}
	s.closers = nil
	return errors.Join(errs...)
}

// Running reports an error if a program of the stage has ended by itself.
func (s *Stage) Running() error {
	for _, p := range s.started {
		if err := p.running(); err != nil {
			return err
		}
	}
	return nil
}

func (s *Stage) start(name string, env []string, path string, args ...string) (*Process, error) {
	p, err := start(name, env, path, args...)
	if err != nil {
		return nil, err
	}
	s.started = append(s.started, p)
	s.later(func(context.Context) error { return p.stop() })
	return p, nil
}

func (s *Stage) openCluster(ctx context.Context) (err error) {
	if s.Cluster, err = startCluster(ctx, s.root); err != nil {
		return err
	}
	s.later(s.Cluster.close)
	return nil
}

func (s *Stage) openInstances(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	env := []string{
		"BELAY_MYSQL_DSN=" + s.cfg.Servers.DSN,
		"BELAY_REDIS_ADDRS=" + strings.Join(s.Cluster.Addrs, ","),
		"BELAY_AMQP_URL=" + s.amqp,
	}
	var all []*Process
	for i := range s.cfg.Instances {
		name := "instance-" + strconv.Itoa(i+1)
		p, err := s.start(name, env, self, "serve", "-listen", "127.0.0.1:0", "-name", name,
			"-rows", strconv.FormatInt(s.cfg.Rows, 10), "-pool", strconv.Itoa(s.cfg.Pool))
		if err != nil {
			return err
		}
		all = append(all, p)
	}
	for _, p := range all {
		addr, err := p.await(ctx, shop.Listening)
		if err != nil {
			return err
		}
		s.Addrs = append(s.Addrs, addr)
	}
	return nil
}

func (s *Stage) openNginx(ctx context.Context) (err error) {
	if !s.cfg.Nginx {
		return nil
	}
	if s.nginx, err = NewNginx(ctx, s.dir, s.Addrs, s.cfg.Control); err != nil {
		return err
	}
	p, err := s.start("nginx", nil, s.nginx.Path, s.nginx.Args...)
	if err != nil {
		return err
	}
	return poll(ctx, startLimit, "nginx answers", func() (bool, error) {
		if err := p.running(); err != nil {
			log, _ := os.ReadFile(filepath.Join(s.dir, "error.log"))
			return false, fmt.Errorf("%w%s", err, log)
		}
		return answers(ctx, "http://"+s.nginx.Addr+"/healthz"), nil
	})
}

// Route is where the i-th user sends path to.
func (s *Stage) Route(i int, path string) (addr, full string) {
	if s.nginx != nil {
		return s.nginx.Addr, path
	}
	return s.Addrs[i%len(s.Addrs)], path
}

// Pin is where a user sends path to who wants one instance.
func (s *Stage) Pin(instance int, path string) (addr, full string) {
	if s.nginx != nil {
		return s.nginx.Addr, Pin(instance, path)
	}
	return s.Addrs[instance], path
}

// Dir is a folder for files of the run; Close removes it.
func (s *Stage) Dir() string { return s.dir }

// Root is the folder of the repository.
func (s *Stage) Root() string { return s.root }

// Answered asks the instances how many operations they have answered.
func (s *Stage) Answered(ctx context.Context) (int, error) {
	sum := 0
	for _, addr := range s.Addrs {
		n, err := number(ctx, "http://"+addr+"/answered")
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}

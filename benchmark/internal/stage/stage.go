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
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/belaygo/belay/benchmark/internal/shop"
)

// Config describes a Stage, and the run that it is for.
type Config struct {
	Servers   Servers
	Rows      int64
	Instances int
	Nginx     bool
	Control   string // address that nginx passes /killed to; "" = none
	Pool      int    // database connections of each instance
	Out       io.Writer

	Methods []shop.Method
	JSON    string // file for the results; "" = none
	Command string // how it can be run again
}

// A Stage is ready for requests. Its methods are not safe for concurrent use
// unless they say so.
type Stage struct {
	Cluster *Cluster
	DB      *sql.DB // of the seeded database, for the audit
	Addrs   []string
	Dir     string // for files of the run; Close removes it
	Root    string // of the repository

	shop.Closers
	cfg     Config
	amqp    string // URL with the virtual host
	monitor string // URL of guard-monitor
	nginx   string // address; "" = there is none
	started []*process
}

const auditConnections = 4

// Open sets everything up. Progress is written to cfg.Out.
func Open(ctx context.Context, cfg Config) (s *Stage, err error) {
	s = &Stage{cfg: cfg}
	defer s.CloseIf(ctx, &err)
	if s.Dir, err = os.MkdirTemp("", "belay-benchmark-"); err != nil {
		return s, err
	}
	s.Later(func(context.Context) error { return os.RemoveAll(s.Dir) })
	if s.Root, err = findRoot(); err != nil {
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

// findRoot returns the folder of the repository.
func findRoot() (string, error) {
	at, err := os.Getwd()
	for err == nil {
		if _, missing := os.Stat(filepath.Join(at, "scripts", "stack")); missing == nil {
			break
		}
		if at == filepath.Dir(at) {
			err = errors.New("run this in the repository, whose scripts/stack is needed")
		}
		at = filepath.Dir(at)
	}
	return at, err
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

func (s *Stage) openInstances(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	env := []string{EnvDSN + "=" + s.cfg.Servers.DSN, EnvRedis + "=" + strings.Join(s.Cluster.Addrs, ","), EnvAMQP + "=" + s.amqp}
	var all []*process
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

// Answered returns how many operations the instances have answered.
func (s *Stage) Answered(ctx context.Context) (sum int, err error) {
	for _, addr := range s.Addrs {
		text, err := Send(ctx, 2*time.Second, http.MethodGet, "http://"+addr+"/answered", "")
		if err != nil {
			return 0, err
		}
		n, err := strconv.Atoi(string(text))
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}

package main

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"

	mysqldriver "github.com/go-sql-driver/mysql"
	"github.com/redis/go-redis/v9"
	"gorm.io/driver/mysql"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/belaygo/belay/lock/redislock"
	"github.com/belaygo/belay/notify/rabbitmq"
)

// stack is the scene of the servers that the variables of scripts/stack env name.
type stack struct {
	dir     string
	cluster cluster
	server  *sql.DB
	product string              // of the database
	dsn     *mysqldriver.Config // of a database of the demo's own
	amqp    string
	pool    *sql.DB
	orm     *gorm.DB
	monitor *realMonitor
}

func runStack(ctx context.Context, scr *screen, control, monitor string) (err error) {
	s, err := openStack(ctx, control, monitor)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	return tell(ctx, "belay demo-stack", s, scr)
}

// openStack makes a database and starts guard-monitor, both of which close ends.
func openStack(ctx context.Context, control, monitor string) (_ *stack, err error) {
	addrs, dsn, amqp := os.Getenv("BELAY_REDIS_ADDRS"), os.Getenv("BELAY_MYSQL_DSN"), os.Getenv("BELAY_AMQP_URL")
	if addrs == "" || dsn == "" || amqp == "" {
		return nil, errors.New(`no servers are named: scripts/stack up, and eval "$(scripts/stack env)"`)
	}
	s := &stack{amqp: amqp, cluster: cluster{strings.Split(addrs, ","), control}}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if s.dir, err = os.MkdirTemp("", "belay-demo-"); err != nil {
		return nil, err
	}
	if err := s.openDatabase(ctx, dsn); err != nil {
		return nil, err
	}
	s.monitor, err = startRealMonitor(ctx, monitor, s.dir, s.cluster.addrs)
	return s, err
}

func (s *stack) is() string {
	return "Redis Cluster (3 masters, 3 replicas), " + s.database() + ", RabbitMQ and guard-monitor are real processes on this host."
}
func (s *stack) database() string { return s.product }
func (s *stack) broker() string   { return "RabbitMQ" }
func (s *stack) db() *gorm.DB     { return s.orm }
func (s *stack) desk() *desk      { return &s.monitor.desk }

// openDatabase makes a database beside the one that dsn names.
func (s *stack) openDatabase(ctx context.Context, dsn string) error {
	config, err := mysqldriver.ParseDSN(dsn)
	if err != nil {
		return fmt.Errorf("BELAY_MYSQL_DSN: %w", err)
	}
	server, err := mysqldriver.NewConnector(config)
	if err != nil {
		return err
	}
	s.server = sql.OpenDB(server)
	var version string
	if err := s.server.QueryRowContext(ctx, "SELECT VERSION()").Scan(&version); err != nil {
		return fmt.Errorf("ask database: %w", err)
	}
	if s.product = "MySQL"; strings.Contains(version, "MariaDB") {
		s.product = "MariaDB"
	}
	name := "belay_demo_" + strings.ToLower(rand.Text()[:10])
	if _, err := s.server.ExecContext(ctx, "CREATE DATABASE "+name); err != nil {
		return fmt.Errorf("create database: %w", err)
	}
	s.dsn = config.Clone()
	s.dsn.DBName = name
	if s.orm, s.pool, err = openMySQL(s.dsn); err != nil {
		return err
	}
	return stockUp(ctx, s.orm, items)
}

func openMySQL(config *mysqldriver.Config) (*gorm.DB, *sql.DB, error) {
	db, err := gorm.Open(mysql.Open(config.FormatDSN()), &gorm.Config{Logger: logger.Discard})
	if err != nil {
		return nil, nil, fmt.Errorf("open database: %w", err)
	}
	pool, err := db.DB()
	if err != nil {
		return nil, nil, fmt.Errorf("open database: %w", err)
	}
	pool.SetMaxOpenConns(10)
	return db, pool, nil
}

// newInstance has clients of its own for every server.
func (s *stack) newInstance(name string) (_ *instance, err error) {
	i := &instance{name: name}
	defer func() {
		if err != nil {
			err = errors.Join(err, i.close(context.Background()))
		}
	}()
	engine, err := redislock.Open(&redis.ClusterOptions{Addrs: s.cluster.addrs}, redislock.Config{})
	if err != nil {
		return nil, err
	}
	i.closes(engine.Close)
	db, pool, err := openMySQL(s.dsn)
	if err != nil {
		return nil, err
	}
	i.pool = pool
	i.closes(func(context.Context) error { return pool.Close() })
	broker, err := rabbitmq.New(s.amqp, rabbitmq.Config{Logger: quiet})
	if err != nil {
		return nil, err
	}
	i.closes(broker.Close)
	return i, i.start(engine, db, db, broker)
}

// loseLock kills the master that has the lock:
//
//	the click's instance    the master        its replica       the double's instance
//	                                          stands still
//	takes the lock          has the key
//	begins its transaction
//	stands still            dies: kill -9
//	                                          becomes master
//	                                          has the key       takes the lock
//	                                                            inserts the order, commits
//	inserts the order:
//	refused
//
// The replica stands still, so that it surely has not got the key: without that a
// lock is lost in some failovers only.
func (s *stack) loseLock(ctx context.Context, scr *screen, click, double request) (clicked, doubled, err error) {
	at, err := s.cluster.shardOf(ctx, itemKey)
	if err != nil {
		return nil, nil, err
	}
	if err := s.cluster.detach(ctx, at); err != nil {
		return nil, nil, err
	}
	clicked, err = click.standing(ctx, func() (err error) {
		doubled, err = s.failOver(ctx, scr, at, click, double)
		return err
	})
	return clicked, doubled, err
}

// failOver does what happens while the click stands.
func (s *stack) failOver(ctx context.Context, scr *screen, at shard, click, double request) (doubled, err error) {
	if has, err := s.cluster.has(ctx, at.master.addr, itemKey); err != nil || !has {
		return nil, errors.Join(errors.New("the lock is not on "+at.master.addr), err)
	}
	scr.say(ctx, click.to.name, "has the lock "+itemKey+", and stands in its transaction, about to insert order "+click.no)
	if err := s.cluster.kill(ctx, at); err != nil {
		return nil, err
	}
	scr.alarm(ctx, at.master.name, "the master that has the lock is killed: kill -9, before its replica has the key")
	if err := s.cluster.promoted(ctx, at); err != nil {
		return nil, err
	}
	scr.say(ctx, at.replica.name, "its replica is the master now, and knows of no lock")
	var c crowd // of one, who asks again while the shop cannot reach Redis
	double.patient = true
	if doubled = c.send(ctx, double); doubled == nil {
		scr.say(ctx, double.to.name, "gets the lock, too, sells order "+double.no+" and commits")
		scr.say(ctx, click.to.name, "goes on, and inserts the same order")
	}
	return doubled, nil
}

func (s *stack) close() error {
	var errs []error
	if s.monitor != nil {
		errs = append(errs, s.monitor.close())
	}
	if s.pool != nil {
		errs = append(errs, s.pool.Close())
	}
	if s.dsn != nil {
		ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
		defer cancel()
		_, err := s.server.ExecContext(ctx, "DROP DATABASE "+s.dsn.DBName)
		errs = append(errs, err)
	}
	if s.server != nil {
		errs = append(errs, s.server.Close())
	}
	return errors.Join(append(errs, os.RemoveAll(s.dir))...)
}

// Package place gives the examples something to run on: the servers that the
// variables of scripts/stack env name, or, without them, locks in memory and an
// SQLite file that goes away with the program.
package place

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"gorm.io/driver/mysql"
	"gorm.io/driver/sqlite"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
	_ "modernc.org/sqlite" // SQLite without cgo

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/memlock"
	"github.com/belaygo/belay/lock/redislock"
	"github.com/belaygo/belay/notify"
	"github.com/belaygo/belay/notify/outbox"
	"github.com/belaygo/belay/notify/rabbitmq"
)

// Variables that name servers. Empty means the embedded default.
const (
	redisAddrs = "BELAY_REDIS_ADDRS" // nodes of a Redis Cluster, comma-separated
	mysqlDSN   = "BELAY_MYSQL_DSN"
	amqpURL    = "BELAY_AMQP_URL" // where lock failures are published
)

// Place is what a service has: a database, and a guard on it.
type Place struct {
	DB    *gorm.DB
	Guard *guard.Guard
	Kind  string // what it runs on, in words

	close []func(context.Context) error // in this order
}

// Open makes a place for a service. The caller closes it.
func Open(ctx context.Context, service string) (_ *Place, err error) {
	if err := routeDriverLogs(slog.Default()); err != nil {
		return nil, err
	}
	p := new(Place)
	defer func() {
		if err != nil {
			err = errors.Join(err, p.Close())
		}
	}()
	if err := p.openDB(); err != nil {
		return nil, err
	}
	publisher, err := p.publisher(ctx, service)
	if err != nil {
		return nil, err
	}
	locker, err := p.locker()
	if err != nil {
		return nil, err
	}
	p.Guard, err = guard.New(p.DB, locker, guard.Config{
		Service:   service,
		Publisher: publisher,
		Logger:    slog.Default(),
	})
	if err != nil {
		return nil, err
	}
	p.before(p.Guard.Close)
	return p, nil
}

// Close closes everything in the order that guard.New asks for: what was opened
// last goes first. It takes no longer than ten seconds.
func (p *Place) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	var errs []error
	for _, f := range p.close {
		errs = append(errs, f(ctx))
	}
	p.close = nil
	return errors.Join(errs...)
}

// before has f called before what was opened earlier is closed.
func (p *Place) before(f func(context.Context) error) {
	p.close = append([]func(context.Context) error{f}, p.close...)
}

func (p *Place) openDB() (err error) {
	quiet := &gorm.Config{Logger: logger.Discard} // Do returns what goes wrong
	if dsn := os.Getenv(mysqlDSN); dsn != "" {
		p.Kind = "MySQL"
		p.DB, err = gorm.Open(mysql.Open(dsn), quiet)
	} else {
		p.Kind = "SQLite"
		p.DB, err = p.openSQLite(quiet)
	}
	if err != nil {
		return fmt.Errorf("open database: %w", err)
	}
	pool, err := p.DB.DB()
	if err != nil {
		return fmt.Errorf("open database: %w", err)
	}
	p.before(func(context.Context) error { return pool.Close() })
	return nil
}

func (p *Place) openSQLite(config *gorm.Config) (*gorm.DB, error) {
	dir, err := os.MkdirTemp("", "belay-example-")
	if err != nil {
		return nil, err
	}
	p.before(func(context.Context) error { return os.RemoveAll(dir) })
	file := filepath.Join(dir, "example.db") + "?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)"
	return gorm.Open(sqlite.New(sqlite.Config{DriverName: "sqlite", DSN: file}), config)
}

func (p *Place) locker() (*lock.Locker, error) {
	engine, err := p.engine()
	if err != nil {
		return nil, err
	}
	locker, err := lock.New(engine, lock.Config{Logger: slog.Default()})
	if err != nil {
		return nil, err
	}
	p.before(locker.Close)
	return locker, nil
}

func (p *Place) engine() (lock.Engine, error) {
	addrs := os.Getenv(redisAddrs)
	if addrs == "" {
		p.Kind += ", locks in memory"
		return memlock.New(), nil
	}
	engine, err := redislock.Open(&redis.ClusterOptions{Addrs: strings.Split(addrs, ",")})
	if err != nil {
		return nil, err
	}
	p.Kind += ", locks in a Redis Cluster"
	p.before(func(context.Context) error { return engine.Close() })
	return engine, nil
}

// publisher stores lock failures in the database until RabbitMQ has them, or
// logs them where there is no RabbitMQ.
func (p *Place) publisher(ctx context.Context, service string) (notify.Publisher, error) {
	url := os.Getenv(amqpURL)
	if url == "" {
		return notify.Log(slog.Default()), nil
	}
	broker, err := rabbitmq.NewPublisher(url, rabbitmq.PublisherConfig{Logger: slog.Default()})
	if err != nil {
		return nil, err
	}
	p.before(broker.Close)
	if err := outbox.Migrate(ctx, p.DB); err != nil {
		return nil, err
	}
	box, err := outbox.New(p.DB, outbox.Config{Service: service, Relay: broker, Logger: slog.Default()})
	if err != nil {
		return nil, err
	}
	p.before(box.Close)
	return box, nil
}

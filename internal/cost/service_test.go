package cost_test

import (
	"context"
	"database/sql"
	"errors"
	"net"
	"testing"
	"time"

	driver "github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/redis/go-redis/v9"
	"gorm.io/driver/mysql"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/redislock"
	"github.com/belaygo/belay/once"
	"github.com/belaygo/belay/relay"
)

// An Order is what operations insert.
type Order struct {
	ID     uint
	No     string `gorm:"size:64;uniqueIndex"`
	Amount int
}

// A Stock is what operations update.
type Stock struct {
	ID      int64
	Left    int
	Version dbguard.Version
}

// A service has one guard, whose locks are in Redis.
type service struct {
	db    *gorm.DB
	guard *guard.Guard
}

// open opens a service with nothing that works by itself: no purger, no relay, no outbox. Its
// requests are noted by to, unless to is nil. It creates the tables if they are missing.
func open(t testing.TB, dsn string, to *recorder) *service {
	t.Helper()
	s := &service{db: openDB(t, dsn, to)}
	opts := &redis.UniversalOptions{IsClusterMode: true, Addrs: teststack.Redis(t)}
	if to != nil {
		names := scripts(t)
		opts.Dialer = to.dial("redis", func() decoder { return &redisDecoder{scripts: names} })
	}
	engine, err := redislock.Open(opts, redislock.Config{})
	if err != nil {
		t.Fatal(err)
	}
	locker, err := lock.New(engine, lock.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if s.guard, err = guard.New(s.db, locker, guard.Config{Service: "cost"}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := errors.Join(s.guard.Close(ctx), locker.Close(ctx), engine.Close(ctx)); err != nil {
			t.Error(err)
		}
	})
	if err := errors.Join(
		s.db.AutoMigrate(&Order{}, &Stock{}),
		once.Migrate(t.Context(), s.db),
		once.MigrateCalls(t.Context(), s.db),
		relay.Migrate(t.Context(), s.db),
	); err != nil {
		t.Fatal(err)
	}
	return s
}

// openDB opens a pool on a database, as docs/setup.md recommends it.
func openDB(t testing.TB, dsn string, to *recorder) *gorm.DB {
	t.Helper()
	var dialect gorm.Dialector
	if testdb.IsPostgres(dsn) {
		dialect = openPostgres(t, dsn, to)
	} else {
		dialect = openMySQL(t, dsn, to)
	}
	db, err := gorm.Open(dialect, &gorm.Config{Logger: logger.Discard})
	if err != nil {
		t.Fatal(err)
	}
	pool, err := db.DB()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pool.Close() })
	return db
}

func openMySQL(t testing.TB, dsn string, to *recorder) gorm.Dialector {
	t.Helper()
	cfg, err := driver.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	cfg.InterpolateParams = true // one round trip for a statement
	if to != nil {
		cfg.DialFunc = to.dial("sql", func() decoder { return new(mysqlDecoder) })
	}
	connector, err := driver.NewConnector(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return mysql.New(mysql.Config{Conn: sql.OpenDB(connector)})
}

func openPostgres(t testing.TB, dsn string, to *recorder) gorm.Dialector {
	t.Helper()
	cfg, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	if to != nil {
		dial := to.dial("sql", func() decoder { return new(postgresDecoder) })
		cfg.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) { return dial(ctx, network, addr) }
	}
	return postgres.New(postgres.Config{Conn: stdlib.OpenDB(*cfg)})
}

package shop

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"time"

	sqldriver "github.com/go-sql-driver/mysql"
	"github.com/redis/go-redis/v9"
	"gorm.io/driver/mysql"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/belaygo/belay"
	"github.com/belaygo/belay/guard"
)

// Config describes a Service. All fields but AMQP, Logger and Dial are required.
type Config struct {
	Name     string // of the instance
	DSN      string // of the server
	Database string
	Redis    []string
	AMQP     string       // default: lock failures are logged, and without Redis nothing is done
	Pool     int          // database connections
	Logger   *slog.Logger // default: silent

	// Dial connects to the database and to Redis. It defaults to that of a net.Dialer.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

// A Service is one instance of the shop, with everything that its methods need. Close
// ends it.
type Service struct {
	Closers
	pool  *sql.DB
	plain *gorm.DB             // without Belay
	redis *redis.ClusterClient // of the plain Redis lock
	belay *belay.Belay
	gates *ungated
	holds *Holds
}

// Open returns a Service. It waits for the database; Ping waits for all servers.
func Open(ctx context.Context, cfg Config) (s *Service, err error) {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	s = &Service{holds: newHolds()}
	defer s.CloseIf(ctx, &err)
	if s.pool, err = openPool(cfg.DSN, cfg.Database, cfg.Pool, cfg.Dial); err != nil {
		return s, err
	}
	s.Later(func(context.Context) error { return s.pool.Close() })
	if s.plain, err = OpenGorm(s.pool); err != nil {
		return s, err
	}
	db, err := OpenGorm(s.pool) // of its own, as Belay adds to it
	if err != nil {
		return s, err
	}
	s.redis = redis.NewClusterClient(&redis.ClusterOptions{Addrs: cfg.Redis, Dialer: cfg.Dial})
	s.Later(func(context.Context) error { return s.redis.Close() })
	parts := belay.Config{
		Service: "benchmark", DB: db, RedisOptions: &redis.UniversalOptions{Addrs: cfg.Redis, Dialer: cfg.Dial}, AMQP: cfg.AMQP, Logger: cfg.Logger,
		Guard: guard.Config{Instance: cfg.Name},
	}
	if cfg.AMQP != "" {
		parts.Guard.OnUnavailable, parts.Guard.DBOnlyLimit = guard.DBOnly, cfg.Pool
	}
	if s.belay, err = belay.Open(ctx, parts); err != nil {
		return s, err
	}
	s.Later(s.belay.Close)
	parts.RedisOptions, parts.Engine, parts.AMQP = nil, s.belay.Redis, ""
	if s.belay.Outbox != nil {
		parts.Publisher = s.belay.Outbox
	}
	s.gates = &ungated{cfg: parts}
	s.Later(s.gates.Close)
	return s, nil
}

// errDSN stands for errors that may show the password.
var errDSN = errors.New("the DSN of the database is malformed")

// OpenPool opens a pool of n connections that are kept: to a database on the server of
// dsn, or to that of dsn itself if it is "".
func OpenPool(dsn, database string, n int) (*sql.DB, error) {
	return openPool(dsn, database, n, nil)
}

func openPool(dsn, database string, n int, dial func(ctx context.Context, network, addr string) (net.Conn, error)) (*sql.DB, error) {
	cfg, err := sqldriver.ParseDSN(dsn)
	if err != nil {
		return nil, errDSN
	}
	if database != "" {
		cfg.DBName = database
	}
	cfg.DialFunc = dial
	cfg.InterpolateParams = true // one round trip per statement, for every method
	connector, err := sqldriver.NewConnector(cfg)
	if err != nil {
		return nil, errDSN
	}
	pool := sql.OpenDB(connector)
	pool.SetMaxOpenConns(n)
	pool.SetMaxIdleConns(n)
	return pool, nil
}

// OpenGorm opens gorm on a pool, without asking the database for anything but
// its version.
func OpenGorm(pool *sql.DB) (*gorm.DB, error) {
	db, err := gorm.Open(mysql.New(mysql.Config{Conn: pool}), &gorm.Config{Logger: logger.Discard})
	if err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	return db, nil
}

// Ping reports whether all servers answer, and fills the pool of connections.
func (s *Service) Ping(ctx context.Context) error {
	if err := s.fill(ctx); err != nil {
		return err
	}
	if err := s.belay.Guard.Ping(ctx); err != nil {
		return err
	}
	if err := s.redis.Ping(ctx).Err(); err != nil {
		return fmt.Errorf("ping redis: %w", err)
	}
	if s.belay.Outbox == nil {
		return nil
	}
	return s.belay.Outbox.Ping(ctx)
}

// fill opens every connection of the pool, so that no method pays for that.
func (s *Service) fill(ctx context.Context) error {
	var open []*sql.Conn
	defer func() {
		for _, c := range open {
			_ = c.Close()
		}
	}()
	for range s.pool.Stats().MaxOpenConnections {
		c, err := s.pool.Conn(ctx)
		if err != nil {
			return fmt.Errorf("open database connections: %w", err)
		}
		open = append(open, c)
	}
	return nil
}

// Do serves one request: value is an order number or the id of an item. With
// hold, the operation of Belay stands still inside its transaction until
// it is resumed.
func (s *Service) Do(ctx context.Context, m Method, value string, hold bool) Answer {
	if m.Sells() {
		item, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			return Answer{Result: Failed, Error: "item is not a number"}
		}
		return judge(s.sell(ctx, m, item))
	}
	return judge(s.order(ctx, m, value, hold))
}

const (
	waitLimit  = time.Minute
	remembered = time.Hour
)

func (s *Service) sell(ctx context.Context, m Method, item int64) error {
	switch m {
	case Pessimistic:
		return sellPessimistic(ctx, s.plain, item, nil)
	case Optimistic:
		return sellOptimistic(ctx, s.plain, item)
	}
	return s.sellGuarded(ctx, item, nil, guard.Combine())
}

func (s *Service) order(ctx context.Context, m Method, no string, hold bool) error {
	o := newOrder(no)
	switch m {
	case UniqueIndex:
		return insertOrder(ctx, s.plain, o)
	case RedisLock:
		return underRedisLock(ctx, s.redis, m.Key(no), func() error { return insertOrder(ctx, s.plain, o) })
	case BelayNoGate:
		return s.gates.do(ctx, m.Key(no), guard.Insert(o).Run)
	case BelayMarked:
		return s.belay.Guard.Apply(ctx, m.Key(no), guard.Insert(o), guard.Remember(remembered))
	}
	if hold {
		return s.belay.Guard.Do(ctx, m.Key(no), s.holds.before(no, guard.Insert(o).Run))
	}
	return s.belay.Guard.Apply(ctx, m.Key(no), guard.Insert(o))
}

// SellOnce sells one of an item without Belay, unless another sale is faster: Stale.
func (s *Service) SellOnce(ctx context.Context, item int64) Answer {
	return judge(sellOnce(ctx, s.plain, item))
}

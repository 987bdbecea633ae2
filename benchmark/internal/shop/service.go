package shop

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	sqldriver "github.com/go-sql-driver/mysql"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
	"gorm.io/driver/mysql"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/redislock"
	"github.com/belaygo/belay/notify/outbox"
	"github.com/belaygo/belay/notify/rabbitmq"
)

// Config describes a Service. All fields but Logger are required.
type Config struct {
	Name   string // of the instance
	DSN    string // of the seeded database
	Redis  []string
	AMQP   string
	Pool   int          // database connections
	Logger *slog.Logger // default: silent
}

// A Service is one instance of the shop, with everything that its methods need.
type Service struct {
	pool   *sql.DB
	plain  *gorm.DB             // without Belay
	redis  *redis.ClusterClient // of the plain Redis lock
	engine *redislock.Engine
	locker *lock.Locker
	guard  *guard.Guard
	gates  *ungated
	broker *rabbitmq.Publisher
	box    *outbox.Outbox
	holds  *Holds
}

// Open returns a Service. It dials nothing; Ping does.
func Open(cfg Config) (s *Service, err error) {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	s = &Service{holds: newHolds()}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close(context.Background()))
		}
	}()
	if s.pool, err = OpenPool(cfg.DSN, cfg.Pool); err != nil {
		return s, err
	}
	if s.plain, err = OpenGorm(s.pool); err != nil {
		return s, err
	}
	db, err := OpenGorm(s.pool) // of its own, as guard.New adds to it
	if err != nil {
		return s, err
	}
	s.redis = redis.NewClusterClient(&redis.ClusterOptions{Addrs: cfg.Redis})
	if s.engine, err = redislock.Open(&redis.ClusterOptions{Addrs: cfg.Redis}, redislock.Config{}); err != nil {
		return s, err
	}
	if s.locker, err = lock.New(s.engine, lock.Config{Logger: cfg.Logger}); err != nil {
		return s, err
	}
	if s.broker, err = rabbitmq.New(cfg.AMQP, rabbitmq.Config{Logger: cfg.Logger}); err != nil {
		return s, err
	}
	if s.box, err = outbox.New(db, outbox.Config{Relay: s.broker, Logger: cfg.Logger}); err != nil {
		return s, err
	}
	settings := guard.Config{
		Service: "benchmark", Instance: cfg.Name, Publisher: s.box, Logger: cfg.Logger,
		OnUnavailable: guard.DBOnly, DBOnlyLimit: cfg.Pool,
	}
	if s.guard, err = guard.New(db, s.locker, settings); err != nil {
		return s, err
	}
	s.gates = &ungated{engine: s.engine, db: db, settings: settings}
	return s, nil
}

// OpenPool opens a pool of n connections that are kept.
func OpenPool(dsn string, n int) (*sql.DB, error) {
	cfg, err := sqldriver.ParseDSN(dsn)
	if err != nil {
		return nil, errDSN
	}
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

// Migrate creates the table of the outbox if it is not there.
func (s *Service) Migrate(ctx context.Context) error { return outbox.Migrate(ctx, s.plain) }

// Ping reports whether all servers answer, and fills the pool of connections.
func (s *Service) Ping(ctx context.Context) error {
	if err := s.fill(ctx); err != nil {
		return err
	}
	if err := s.guard.Ping(ctx); err != nil {
		return err
	}
	if err := s.redis.Ping(ctx).Err(); err != nil {
		return fmt.Errorf("ping redis: %w", err)
	}
	return s.box.Ping(ctx)
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
// Holds().Resume.
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
	remembered = 10 * time.Minute
)

func (s *Service) sell(ctx context.Context, m Method, item int64) error {
	switch m {
	case Pessimistic:
		return SellPessimistic(ctx, s.plain, item)
	case Optimistic:
		return sellOptimistic(ctx, s.plain, item)
	}
	return s.guard.Apply(ctx, m.Key(strconv.FormatInt(item, 10)), SellGuarded(item), guard.Wait(waitLimit))
}

func (s *Service) order(ctx context.Context, m Method, no string, hold bool) error {
	o := NewOrder(no)
	switch m {
	case UniqueIndex:
		return InsertOrder(ctx, s.plain, o)
	case RedisLock:
		return underRedisLock(ctx, s.redis, m.Key(no), func() error { return InsertOrder(ctx, s.plain, o) })
	case BelayNoGate:
		return s.gates.do(ctx, m.Key(no), guard.Insert(o).Run)
	case BelayMarked:
		return s.guard.Apply(ctx, m.Key(no), guard.Insert(o), guard.Remember(remembered))
	}
	if hold {
		return s.guard.Do(ctx, m.Key(no), s.holds.before(no, guard.Insert(o).Run))
	}
	return s.guard.Apply(ctx, m.Key(no), guard.Insert(o))
}

// Holds returns the operations that stand still.
func (s *Service) Holds() *Holds { return s.holds }

// Collectors returns the metrics of the parts of Belay.
func (s *Service) Collectors() []prometheus.Collector {
	return []prometheus.Collector{s.engine, s.locker, s.guard, s.box, s.broker}
}

// Close ends everything in the order that guard.New names. What was never
// opened is left out.
func (s *Service) Close(ctx context.Context) error {
	var errs []error
	add := func(err error) { errs = append(errs, err) }
	if s.guard != nil {
		add(s.guard.Close(ctx))
	}
	if s.gates != nil {
		add(s.gates.close(ctx))
	}
	if s.locker != nil {
		add(s.locker.Close(ctx))
	}
	if s.box != nil {
		add(s.box.Close(ctx))
	}
	if s.broker != nil {
		add(s.broker.Close(ctx))
	}
	if s.engine != nil {
		add(s.engine.Close(ctx))
	}
	if s.redis != nil {
		add(s.redis.Close())
	}
	if s.pool != nil {
		add(s.pool.Close())
	}
	return errors.Join(errs...)
}

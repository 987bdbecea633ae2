package versus

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
	"gorm.io/gorm"

	"github.com/belaygo/belay/benchmark/internal/cost"
	"github.com/belaygo/belay/benchmark/internal/measure"
	"github.com/belaygo/belay/benchmark/internal/shop"
	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/redislock"
)

// An arena is what all cases share: one pool of connections, and one lock.
type arena struct {
	prefix string // of the run's keys
	base   string // the database, which is made for the run and dropped after it
	admin  *sql.DB
	pool   *sql.DB
	plain  *gorm.DB // without Belay
	engine *redislock.Engine
	locker *lock.Locker
	guard  *guard.Guard
	redis  *redis.ClusterClient // to look at the servers with
	meter  cost.Meter
}

func open(ctx context.Context, cfg Config) (a *arena, err error) {
	now := time.Now().UnixMilli()
	a = &arena{prefix: fmt.Sprintf("G%d", now), base: fmt.Sprintf("belay_guard_%d", now)}
	defer func() {
		if err != nil {
			err = errors.Join(err, a.close())
		}
	}()
	if a.admin, err = sql.Open("mysql", cfg.DSN); err != nil {
		return a, fmt.Errorf("open database: %w", err)
	}
	if a.pool, err = shop.Create(ctx, cfg.DSN, a.base, cfg.Pool); err != nil {
		return a, err
	}
	a.redis = redis.NewClusterClient(&redis.ClusterOptions{Addrs: cfg.Redis})
	a.meter = cost.Meter{DB: a.admin, Redis: a.redis}
	return a, a.openGuard(cfg)
}

func (a *arena) openGuard(cfg Config) (err error) {
	if a.plain, err = shop.OpenGorm(a.pool); err != nil {
		return err
	}
	db, err := shop.OpenGorm(a.pool) // of its own, as guard.New adds to it
	if err != nil {
		return err
	}
	if a.engine, err = redislock.Open(&redis.ClusterOptions{Addrs: cfg.Redis}, redislock.Config{}); err != nil {
		return err
	}
	if a.locker, err = lock.New(a.engine, lock.Config{}); err != nil {
		return err
	}
	a.guard, err = guard.New(db, a.locker, guard.Config{Service: "benchmark"})
	return err
}

// probe writes as the script of a lock does.
var probe = redis.NewScript(`redis.call('hset', KEYS[1], 'owner', 1)
redis.call('pexpire', KEYS[1], 30000)
return redis.call('time')`)

// roundTrip is the median time of a script that writes, by a client that does
// nothing else.
func (a *arena) roundTrip(ctx context.Context) (time.Duration, error) {
	var took measure.Histogram
	for range 1000 {
		start := time.Now()
		if err := probe.Run(ctx, a.redis, []string{a.prefix + ":probe"}).Err(); err != nil {
			return 0, fmt.Errorf("ask redis: %w", err)
		}
		took.Add(time.Since(start))
	}
	return took.Quantile(0.5), nil
}

func (a *arena) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	var errs []error
	if a.guard != nil {
		errs = append(errs, a.guard.Close(ctx))
	}
	if a.locker != nil {
		errs = append(errs, a.locker.Close(ctx))
	}
	if a.engine != nil {
		errs = append(errs, a.engine.Close(ctx))
	}
	if a.redis != nil {
		errs = append(errs, a.redis.Close())
	}
	if a.pool != nil {
		errs = append(errs, a.pool.Close())
	}
	if a.admin != nil {
		_, err := a.admin.ExecContext(ctx, "DROP DATABASE IF EXISTS "+a.base)
		errs = append(errs, err, a.admin.Close())
	}
	return errors.Join(errs...)
}

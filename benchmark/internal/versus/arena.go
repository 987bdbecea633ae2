package versus

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/redis/go-redis/v9"
	"gorm.io/gorm"

	"github.com/belaygo/belay"
	"github.com/belaygo/belay/benchmark/internal/cost"
	"github.com/belaygo/belay/benchmark/internal/measure"
	"github.com/belaygo/belay/benchmark/internal/shop"
	"github.com/belaygo/belay/guard"
)

// An arena is what all cases share: one pool of connections, and one lock.
type arena struct {
	shop.Closers
	prefix string // of the run's keys
	pool   *sql.DB
	plain  *gorm.DB // without Belay
	guard  *guard.Guard
	redis  *redis.ClusterClient // to look at the servers with
	meter  cost.Meter
}

func open(ctx context.Context, cfg Config) (a *arena, err error) {
	now := time.Now().UnixMilli()
	a = &arena{prefix: fmt.Sprintf("G%d", now)}
	base := fmt.Sprintf("belay_guard_%d", now) // dropped after the run
	defer func() {
		if err != nil {
			err = errors.Join(err, a.Close(ctx))
		}
	}()
	server, err := shop.OpenPool(cfg.Servers.DSN, 1)
	if err != nil {
		return a, err
	}
	a.Later(func(ctx context.Context) error {
		_, err := server.ExecContext(ctx, "DROP DATABASE IF EXISTS "+base)
		return errors.Join(err, server.Close())
	})
	if a.pool, err = shop.Create(ctx, cfg.Servers.DSN, base, cfg.Pool); err != nil {
		return a, err
	}
	a.Later(func(context.Context) error { return a.pool.Close() })
	a.redis = redis.NewClusterClient(&redis.ClusterOptions{Addrs: cfg.Servers.Redis})
	a.Later(func(context.Context) error { return a.redis.Close() })
	a.meter = cost.Meter{DB: server, Redis: a.redis, CPU: measure.NewMeter()}
	a.meter.CPU.Add("self", os.Getpid())
	return a, a.openGuard(ctx, cfg)
}

func (a *arena) openGuard(ctx context.Context, cfg Config) (err error) {
	if a.plain, err = shop.OpenGorm(a.pool); err != nil {
		return err
	}
	db, err := shop.OpenGorm(a.pool) // of its own, as guard.New adds to it
	if err != nil {
		return err
	}
	parts, err := belay.Open(ctx, belay.Config{Service: "benchmark", DB: db, Redis: &redis.ClusterOptions{Addrs: cfg.Servers.Redis}})
	if err != nil {
		return err
	}
	a.Later(parts.Close)
	a.guard = parts.Guard
	return nil
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

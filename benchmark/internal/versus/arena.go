package versus

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"github.com/belaygo/belay/benchmark/internal/cost"
	"github.com/belaygo/belay/benchmark/internal/measure"
	"github.com/belaygo/belay/benchmark/internal/shop"
	"github.com/belaygo/belay/once"
)

// An arena is what all cases share: one shop, with one pool of connections and one
// lock, and workers with shops of their own.
type arena struct {
	shop.Closers
	prefix  string // of the run's keys
	shop    *shop.Service
	workers []*worker            // the processes of cases that have several
	db      *sql.DB              // of its database, to look at the tables with
	redis   *redis.ClusterClient // to look at the servers with
	meter   cost.Meter
}

func open(ctx context.Context, cfg Config) (a *arena, err error) {
	now := time.Now().UnixMilli()
	a = &arena{prefix: fmt.Sprintf("G%d", now)}
	base := fmt.Sprintf("belay_guard_%d", now) // dropped after the run
	defer a.CloseIf(ctx, &err)
	if a.db, err = shop.Create(ctx, cfg.Servers.DSN, base); err != nil {
		return a, err
	}
	a.Later(func(ctx context.Context) error {
		_, err := a.db.ExecContext(ctx, "DROP DATABASE "+base)
		return errors.Join(err, a.db.Close())
	})
	a.redis = redis.NewClusterClient(&redis.ClusterOptions{Addrs: cfg.Servers.Redis})
	a.Later(func(context.Context) error { return a.redis.Close() })
	a.meter = cost.Meter{DB: a.db, Redis: a.redis, CPU: measure.NewMeter()}
	a.meter.CPU.Add("self", os.Getpid())
	own := setup{Servers: cfg.Servers, Database: base, Pool: cfg.Pool, Delay: cfg.Delay}
	if a.shop, err = own.open(ctx, &a.Closers); err != nil {
		return a, err
	}
	if err = a.startWorkers(ctx, cfg.Cases, own); err != nil {
		return a, err
	}
	err = a.migrate(ctx)
	if err == nil {
		err = a.seed(ctx)
	}
	return a, err
}

// migrate makes the tables of requests.
func (a *arena) migrate(ctx context.Context) error {
	db, err := shop.OpenGorm(a.db)
	if err != nil {
		return err
	}
	return once.Migrate(ctx, db)
}

// startWorkers starts as many as a case has. Each has a connection for each caller.
func (a *arena) startWorkers(ctx context.Context, cases []Case, s setup) error {
	n := 0
	for _, c := range cases {
		if c.processes > 1 {
			n, s.Pool = max(n, c.processes), min(s.Pool, c.callers/c.processes)
		}
	}
	for range n {
		w, err := start(ctx, &a.Closers, s)
		if err != nil {
			return err
		}
		a.workers = append(a.workers, w)
		a.meter.CPU.Add("self", w.cmd.Process.Pid)
	}
	return nil
}

// seeded is how many orders are there when the heats begin. The first layer
// remembers them.
const seeded = 4096

// seed inserts the orders that are there.
func (a *arena) seed(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(64)
	for n := range int64(seeded) {
		group.Go(func() error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if got := a.shop.Do(ctx, shop.BelayMarked, seededNo(a.prefix, n), false); got.Result != shop.Done {
				return fmt.Errorf("insert the orders that are repeated: %s %s", got.Result, got.Error)
			}
			return nil
		})
	}
	return group.Wait()
}

func seededNo(run string, n int64) string { return fmt.Sprintf("%s-s-%09d", run, n) }

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

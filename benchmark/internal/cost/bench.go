package cost

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/belaygo/belay/benchmark/internal/measure"
	"github.com/belaygo/belay/benchmark/internal/shop"
	"github.com/belaygo/belay/benchmark/internal/stage"
	"github.com/belaygo/belay/notify/outbox"
)

// A Bench is one caller in front of tables of one size.
type Bench struct {
	rows    int64
	item    string // that is sold
	service *shop.Service
	meter   Meter
	closers []func(context.Context) error
}

// Open returns a Bench on seeded tables.
func Open(ctx context.Context, servers stage.Servers, nodes []string, rows int64) (b *Bench, err error) {
	b = &Bench{rows: rows, item: strconv.FormatInt(rows/2, 10)}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.Close(ctx))
		}
	}()
	dsn, err := shop.DSN(servers.DSN, rows)
	if err != nil {
		return b, err
	}
	if err := b.openTables(ctx, dsn); err != nil {
		return b, err
	}
	if b.service, err = shop.Open(shop.Config{Name: "cost", DSN: dsn, Redis: nodes, AMQP: servers.AMQP, Pool: 2}); err != nil {
		return b, err
	}
	b.later(func(ctx context.Context) error {
		_ = b.service.Close(ctx) // without a monitor its broker may have nowhere to go
		return nil
	})
	b.meter.Redis = redis.NewClusterClient(&redis.ClusterOptions{Addrs: nodes})
	b.later(func(context.Context) error { return b.meter.Redis.Close() })
	b.meter.CPU = measure.NewMeter()
	b.meter.CPU.Add("client", os.Getpid())
	pid, err := stage.MariaDB(ctx, b.meter.DB)
	if err != nil {
		return b, err
	}
	b.meter.CPU.Add("mariadb", pid)
	return b, nil
}

// openTables makes sure that the tables are there, keeps other runs away, and puts
// plenty of the item on the shelf.
func (b *Bench) openTables(ctx context.Context, dsn string) (err error) {
	if b.meter.DB, err = shop.OpenPool(dsn, 3); err != nil {
		return err
	}
	b.later(func(context.Context) error { return b.meter.DB.Close() })
	if err := shop.CheckSeeded(ctx, b.meter.DB, b.rows); err != nil {
		return err
	}
	release, err := stage.Reserve(ctx, b.meter.DB, b.rows)
	if err != nil {
		return err
	}
	b.later(release)
	db, err := shop.OpenGorm(b.meter.DB)
	if err != nil {
		return err
	}
	b.later(func(ctx context.Context) error { return shop.CleanUp(ctx, db, b.rows) })
	if err := errors.Join(shop.CleanUp(ctx, db, b.rows), outbox.Migrate(ctx, db)); err != nil {
		return err
	}
	_, err = b.meter.DB.ExecContext(ctx, "UPDATE stocks SET remaining = 1000000000 WHERE id = ?", b.item)
	return err
}

func (b *Bench) later(f func(context.Context) error) { b.closers = append(b.closers, f) }

// Close removes what was written.
func (b *Bench) Close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	var errs []error
	for i := range b.closers {
		errs = append(errs, b.closers[len(b.closers)-1-i](ctx))
	}
	return errors.Join(errs...)
}

// Measure runs n operations of each case of m.
func (b *Bench) Measure(ctx context.Context, m shop.Method, n int) (costs []Cost, err error) {
	prefix := "T" + strconv.FormatInt(time.Now().UnixNano(), 36) // grows with time, as most order numbers do
	value := func(i int) string { return fmt.Sprintf("%s-%07d", prefix, i) }
	cases := []struct {
		name string
		want shop.Result
	}{{"first", shop.Done}, {"repeat", shop.Duplicate}}
	if m == shop.BelayMarked {
		cases[1].want = shop.Busy // Redis remembers it
	}
	if m.Sells() {
		value, cases = func(int) string { return b.item }, cases[:1]
	}
	b.service.Do(ctx, m, value(n+1), false) // opens what is opened once
	for _, c := range cases {
		cost, err := b.meter.Measure(ctx, n, func(i int) error {
			if got := b.service.Do(ctx, m, value(i), false); got.Result != c.want {
				return fmt.Errorf("got %s instead of %s: %s", got.Result, c.want, got.Error)
			}
			return ctx.Err()
		})
		if err != nil {
			return nil, fmt.Errorf("%s, %s, %d rows: %w", m, c.name, b.rows, err)
		}
		if m == shop.RedisLock {
			cost.RedisCommands-- // the GET in its script, which Redis counts among those of clients
		}
		cost.Method, cost.Case, cost.Rows = string(m), c.name, b.rows
		costs = append(costs, cost)
	}
	return costs, nil
}

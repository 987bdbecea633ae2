package cost

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/belaygo/belay/benchmark/internal/measure"
	"github.com/belaygo/belay/benchmark/internal/shop"
	"github.com/belaygo/belay/benchmark/internal/stage"
)

// A Bench is one caller in front of tables of one size. Close removes what was
// written.
type Bench struct {
	shop.Closers
	rows     int64
	item     string // that is sold
	service  *shop.Service
	requests *shop.Requests
	meter    Meter
}

// Open returns a Bench on seeded tables.
func Open(ctx context.Context, servers stage.Servers, rows int64) (b *Bench, err error) {
	b = &Bench{rows: rows, item: strconv.FormatInt(rows/2, 10)}
	defer b.CloseIf(ctx, &err)
	if b.meter.DB, err = stage.OpenTables(ctx, &b.Closers, servers.DSN, rows, 3); err != nil {
		return b, err
	}
	if _, err = b.meter.DB.ExecContext(ctx, "UPDATE stocks SET remaining = 1000000000 WHERE id = ?", b.item); err != nil {
		return b, fmt.Errorf("fill the shelf: %w", err)
	}
	if b.service, err = shop.Open(ctx, shop.Config{
		Name: "cost", DSN: servers.DSN, Database: shop.Database(rows), Redis: servers.Redis, AMQP: servers.AMQP, Pool: 2,
	}); err != nil {
		return b, err
	}
	b.Later(func(ctx context.Context) error {
		_ = b.service.Close(ctx) // without a monitor its broker may have nowhere to go
		return nil
	})
	if b.requests, err = b.service.Requests(ctx); err != nil {
		return b, err
	}
	b.meter.Redis = redis.NewClusterClient(&redis.ClusterOptions{Addrs: servers.Redis})
	b.Later(func(context.Context) error { return b.meter.Redis.Close() })
	b.meter.CPU = measure.NewMeter()
	b.meter.CPU.Add("client", os.Getpid())
	pid, err := stage.MariaDB(ctx, b.meter.DB)
	if err != nil {
		return b, err
	}
	b.meter.CPU.Add("mariadb", pid)
	return b, nil
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
		cost, err := b.measure(ctx, string(m), c.name, n, c.want, func(i int) shop.Answer { return b.service.Do(ctx, m, value(i), false) })
		if err != nil {
			return nil, err
		}
		if m == shop.RedisLock {
			cost.RedisCommands-- // the GET in its script, which Redis counts among those of clients
		}
		costs = append(costs, cost)
	}
	return costs, nil
}

// measure runs n operations that are to end with want.
func (b *Bench) measure(ctx context.Context, method, name string, n int, want shop.Result, op func(i int) shop.Answer) (Cost, error) {
	cost, err := b.meter.Measure(ctx, n, func(i int) error {
		if got := op(i); got.Result != want {
			return fmt.Errorf("got %s instead of %s: %s", got.Result, want, got.Error)
		}
		return ctx.Err()
	})
	if err != nil {
		return cost, fmt.Errorf("%s, %s, %d rows: %w", method, name, b.rows, err)
	}
	cost.Method, cost.Case, cost.Rows = method, name, b.rows
	return cost, nil
}

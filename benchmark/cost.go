package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/belaygo/belay/benchmark/internal/cost"
	"github.com/belaygo/belay/benchmark/internal/seed"
	"github.com/belaygo/belay/benchmark/internal/shop"
	"github.com/belaygo/belay/benchmark/internal/stage"
	"github.com/belaygo/belay/notify/outbox"
)

// runCost measures on the servers of the environment, without HTTP. Nothing else
// should use them meanwhile: the counters are the servers' own.
func runCost(ctx context.Context, args []string) error {
	fs := flag.NewFlagSet("cost", flag.ContinueOnError)
	rows := rowsFlag(fs)
	n := fs.Int("n", 2000, "operations of each kind")
	path := fs.String("json", "", "file for the results")
	if err := parse(fs, args); err != nil {
		return err
	}
	if err := checkRows(*rows); err != nil {
		return err
	}
	if *n < 1 {
		return usagef("-n %d: want at least 1", *n)
	}
	servers, err := stage.FromEnvironment()
	if err != nil {
		return err
	}
	nodes := os.Getenv("BELAY_REDIS_ADDRS")
	if nodes == "" {
		return fmt.Errorf("BELAY_REDIS_ADDRS: %w", stage.ErrNoStack)
	}
	costs, err := measureCosts(ctx, servers, strings.Split(nodes, ","), *rows, *n)
	if err != nil {
		return err
	}
	printCosts(costs)
	if *path == "" {
		return nil
	}
	text, err := json.MarshalIndent(costs, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(*path, append(text, '\n'), 0o644) //nolint:gosec // results are to be read
}

func measureCosts(ctx context.Context, servers stage.Servers, nodes []string, rows int64, n int) (costs []cost.Cost, err error) {
	dsn, err := seed.DSN(servers.DSN, rows)
	if err != nil {
		return nil, err
	}
	pool, err := shop.OpenPool(dsn, 2)
	if err != nil {
		return nil, err
	}
	defer pool.Close()
	if err := seed.Check(ctx, pool, rows); err != nil {
		return nil, err
	}
	db, err := shop.OpenGorm(pool)
	if err != nil {
		return nil, err
	}
	if err := outbox.Migrate(ctx, db); err != nil {
		return nil, err
	}
	defer func() {
		if e := shop.CleanUp(context.WithoutCancel(ctx), db, rows); err == nil {
			err = e
		}
	}()
	s, err := shop.Open(shop.Config{Name: "cost", DSN: dsn, Redis: nodes, AMQP: servers.AMQP, Pool: 2})
	if err != nil {
		return nil, err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
		defer cancel()
		_ = s.Close(ctx) // without a monitor its broker may have nowhere to go
	}()
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: nodes})
	defer client.Close()
	m := cost.Meter{DB: pool, Redis: client}
	item := strconv.FormatInt(rows/2, 10)
	if _, err := pool.ExecContext(ctx, "UPDATE stocks SET remaining = 1000000000 WHERE id = ?", item); err != nil {
		return nil, err
	}
	for _, method := range shop.Methods() {
		prefix := fmt.Sprintf("T%d-%s-", time.Now().Unix(), method[:1])
		value := func(i int) string { return fmt.Sprintf("%s%07d", prefix+strconv.Itoa(len(method)), i) }
		kinds := []struct {
			name string
			want shop.Result
		}{{"first", shop.Done}, {"repeat", shop.Duplicate}}
		if method.Sells() {
			value = func(int) string { return item }
			kinds = kinds[:1]
		}
		warm := value(n + 1)
		_ = s.Do(ctx, method, warm, false)
		for _, k := range kinds {
			c, err := m.Measure(ctx, method, k.name, n, func(i int) shop.Answer { return s.Do(ctx, method, value(i), false) }, k.want)
			if err != nil {
				return nil, err
			}
			costs = append(costs, c)
		}
	}
	return costs, nil
}

func printCosts(costs []cost.Cost) {
	t := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "method\tcase\tµs\tredis commands\tin B\tout B\tredis µs\tstatements\tin B\tout B\tfsyncs\tallocations\tB\t")
	for _, c := range costs {
		fmt.Fprintf(t, "%s\t%s\t%.0f\t%.2f\t%.0f\t%.0f\t%.1f\t%.2f\t%.0f\t%.0f\t%.2f\t%.0f\t%.0f\t\n",
			c.Method, c.Case, c.Micros, c.RedisCommands, c.RedisIn, c.RedisOut, c.RedisMicros,
			c.Statements, c.MySQLIn, c.MySQLOut, c.Fsyncs, c.Allocations, c.AllocBytes)
	}
	_ = t.Flush()
}

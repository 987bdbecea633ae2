package main

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"os"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/go-sql-driver/mysql"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/belaygo/belay/benchmark/internal/measure"
)

// messageKeys is how many keys the messages have, and messageBytes how long each is.
const (
	messageKeys  = 1000
	messageBytes = 300
)

// A mover takes messages from a table of MariaDB to a durable queue of RabbitMQ.
type mover struct {
	name, settings string
	// fill stores n messages for a queue, in a new table.
	fill func(ctx context.Context, pool *sql.DB, queue string, n int) error
	// move moves them until ctx ends.
	move func(ctx context.Context, pool *sql.DB, queue string) error
}

// benchMessages is the command messages.
func benchMessages(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("messages", flag.ContinueOnError)
	rounds := flags.Int("rounds", 3, "how often each measurement is made; the median counts")
	n := flags.Int("n", 20_000, "messages")
	names := flags.String("contenders", "", "comma-separated names; empty = all")
	file := flags.String("json", "", "also write the results to this file")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *rounds < 1 || *n < 1 {
		return errors.New("rounds and n must be positive")
	}
	url := os.Getenv("BELAY_AMQP_URL")
	chosen, err := measure.Choose(*names, movers(url), func(m mover) string { return m.name })
	if err != nil {
		return err
	}
	conn, err := amqp.Dial(url)
	if err != nil {
		return fmt.Errorf("connect to RabbitMQ: %w", err)
	}
	defer func() { _ = conn.Close() }()
	fmt.Println(measure.Describe(ctx))
	fmt.Printf("%d messages of %d bytes and %d keys, from a table of MariaDB to a durable queue of RabbitMQ, confirmed; %d rounds in turning order; medians\n",
		*n, messageBytes, messageKeys, *rounds)
	for _, m := range chosen {
		fmt.Printf("  %-24s %s\n", m.name, m.settings)
	}
	rates := make(map[string][]float64)
	for round := range *rounds {
		for i := range chosen {
			m := chosen[(i+round)%len(chosen)]
			rate, err := moveAll(ctx, conn, m, *n)
			if err != nil {
				return fmt.Errorf("%s: %w", m.name, err)
			}
			rates[m.name] = append(rates[m.name], rate)
		}
		fmt.Fprintf(os.Stderr, "round %d of %d done\n", round+1, *rounds)
	}
	return reportMessages(chosen, rates, *file)
}

func reportMessages(chosen []mover, rates map[string][]float64, file string) error {
	t := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "\ncontender\tmessages/s\tx %s\t\n", chosen[0].name)
	first := measure.Median(rates[chosen[0].name])
	for _, m := range chosen {
		rate := measure.Median(rates[m.name])
		fmt.Fprintf(t, "%s\t%.0f\t%s\t\n", m.name, rate, ratio(rate, first))
	}
	_ = t.Flush()
	fmt.Printf("load now %s\n", measure.LoadAverages())
	return measure.WriteJSON(file, rates)
}

// moveAll returns how many messages a mover moves in a second. It has a new database and a new queue.
func moveAll(ctx context.Context, conn *amqp.Connection, m mover, n int) (rate float64, err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	name := "peers_" + strconv.FormatInt(time.Now().UnixNano(), 36)
	pool, drop, err := newDatabase(ctx, name)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, drop()) }()
	ch, err := conn.Channel()
	if err != nil {
		return 0, err
	}
	defer func() { _ = ch.Close() }()
	if _, err := ch.QueueDeclare(name, true, false, false, false, nil); err != nil {
		return 0, err
	}
	defer func() {
		_, failed := ch.QueueDelete(name, false, false, false)
		err = errors.Join(err, failed)
	}()
	if err := m.fill(ctx, pool, name, n); err != nil {
		return 0, fmt.Errorf("store the messages: %w", err)
	}
	took, err := timed(ctx,
		func(ctx context.Context) error { return m.move(ctx, pool, name) },
		func(ctx context.Context) error { return wholeQueue(ctx, ch, name, n) })
	return float64(n) / took.Seconds(), err
}

// timed returns how long it takes until all has arrived. It ends move then, and arrived when move has ended.
func timed(ctx context.Context, move, arrived func(context.Context) error) (time.Duration, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	begun := time.Now()
	go func() {
		defer stop() // a mover that has failed moves no more
		ended <- move(ctx)
	}()
	err := arrived(ctx)
	took := time.Since(begun)
	stop()
	if failed := <-ended; failed != nil && !errors.Is(failed, context.Canceled) {
		err = errors.Join(err, failed)
	}
	return took, err
}

// wholeQueue returns when a queue has n messages.
func wholeQueue(ctx context.Context, ch *amqp.Channel, queue string, n int) error {
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for {
		q, err := ch.QueueDeclarePassive(queue, true, false, false, false, nil)
		if err != nil {
			return err
		}
		if q.Messages >= n {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d of %d messages have come: %w", q.Messages, n, ctx.Err())
		case <-ticker.C:
		}
	}
}

// newDatabase creates a database of MariaDB, and returns what drops it.
func newDatabase(ctx context.Context, name string) (pool *sql.DB, drop func() error, err error) {
	cfg, err := mysql.ParseDSN(os.Getenv("BELAY_MYSQL_DSN"))
	if err != nil {
		return nil, nil, fmt.Errorf("BELAY_MYSQL_DSN: %w", err)
	}
	cfg.DBName, cfg.InterpolateParams = "", true
	admin, err := sql.Open("mysql", cfg.FormatDSN())
	if err != nil {
		return nil, nil, err
	}
	if _, err := admin.ExecContext(ctx, "CREATE DATABASE "+name); err != nil {
		return nil, nil, errors.Join(err, admin.Close())
	}
	cfg.DBName = name
	if pool, err = sql.Open("mysql", cfg.FormatDSN()); err != nil {
		return nil, nil, errors.Join(err, admin.Close())
	}
	return pool, func() error {
		_, err := admin.ExecContext(context.WithoutCancel(ctx), "DROP DATABASE "+name)
		return errors.Join(pool.Close(), err, admin.Close())
	}, nil
}

// keyOf and bodyOf are those of the nth message. The body is JSON.
func keyOf(n int) string { return fmt.Sprint("item:", n%messageKeys) }

func bodyOf(n int) []byte { return fmt.Appendf(nil, `{"no":"%0*d"}`, messageBytes-len(`{"no":""}`), n) }

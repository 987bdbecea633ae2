// Demo is a flash sale with a lock that gets lost.
//
// 3 instances of a service sell 50 items to 1,000 requests that come at once;
// every second request repeats an earlier order number. When half of the items
// are sold, one lock vanishes from Redis while its holder works, and another
// instance finishes the same order meanwhile. The database refuses the order
// that comes second, and the monitor says what happened.
//
// Redis (miniredis), the database (SQLite), the broker and the monitor all run
// in this process: the demo needs nothing but Go. At the end the books are
// checked; the exit status is 1 if anything was oversold or duplicated, or if
// an alert is missing.
//
// Read shop.go first: it is what a user of Belay writes. instance.go puts a
// service together. The rest is the crowd, the accident and the audit.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"
)

const (
	items     = 50
	requests  = 1000
	instances = 3

	timeout      = time.Minute
	closeTimeout = 10 * time.Second
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "belay demo:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer) (err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	s, err := open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	return s.sell(ctx, out)
}

// sell opens the doors, waits for the last answer and the last alert, and tells
// what happened. It returns what is wrong about it.
func (s *sale) sell(ctx context.Context, out io.Writer) error {
	shop, err := s.startShop()
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "Flash sale: %d items, %d concurrent requests, every second one a repeat, %d instances.\n", items, requests, instances)
	c := crowd{
		requests: newRequests(requests, shop),
		half:     items / 2,
		halfway: func(ctx context.Context, click, double request) (clicked, doubled error) {
			fmt.Fprintf(out, "Half of them are sold. %s takes the lock to sell order %s, and the lock is lost.\n\n", click.to.name, click.no)
			return failover(ctx, s.redis, click, double)
		},
	}
	start := time.Now()
	answers := c.rush(ctx)
	elapsed := time.Since(start)
	if err := closeShop(shop); err != nil { // hands over the last alerts
		return err
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("stopped before the sale was over: %w", err)
	}

	told := count(answers)
	books, err := readBooks(ctx, s.db, s.alerts)
	if err != nil {
		return err
	}
	report(out, answers, elapsed, told, s.alerts.lines.String())
	fmt.Fprintf(out, "belay demo: %d requests, %d sold, %d oversold, %d duplicates, %d lock failures intercepted, %d alerts\n",
		len(answers), books.orders, books.oversold(items), books.duplicates(), told.failures, books.failures)
	return audit(items, told, books)
}

// Consumer reads messages that come more than once, as every queue delivers them
// now and then, and books each of them once:
//
//	go -C examples run ./consumer
//
// By itself it keeps its locks in memory and its accounts in SQLite. After
// eval "$(scripts/stack env)" it uses those servers.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"

	"github.com/belaygo/belay/examples/internal/place"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "consumer:", err)
		os.Exit(1)
	}
}

const (
	accounts = 5
	payments = 200
	workers  = 8
)

func run(ctx context.Context, out io.Writer) (err error) {
	p, err := place.Open(ctx, "consumer")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	db := p.DB.WithContext(ctx)
	if err := db.AutoMigrate(&Handled{}, &Account{}); err != nil {
		return fmt.Errorf("create tables: %w", err)
	}
	opened := make([]Account, accounts)
	if err := db.Create(&opened).Error; err != nil {
		return fmt.Errorf("open accounts: %w", err)
	}

	q := newQueue(opened)
	h := &handler{guard: p.Guard}
	if err := q.serve(ctx, h); err != nil {
		return err
	}

	var cents int64
	for i := range opened {
		if err := db.Take(&opened[i], opened[i].ID).Error; err != nil {
			return err
		}
		cents += opened[i].Cents
	}
	fmt.Fprintf(out, "%s: %d payments of 100 cents delivered %d times: %d cents booked\n", p.Kind, payments, q.delivered.Load(), cents)
	if cents != payments*100 {
		return fmt.Errorf("%d cents were booked, want %d", cents, payments*100)
	}
	return nil
}

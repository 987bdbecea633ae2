package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	"github.com/belaygo/belay/benchmark/internal/shop"
	"github.com/belaygo/belay/benchmark/internal/stage"
)

func runSeed(ctx context.Context, args []string) error {
	fs := flag.NewFlagSet("seed", flag.ContinueOnError)
	rows := rowsFlag(fs)
	if err := parse(fs, args); err != nil {
		return err
	}
	if err := checkRows(*rows); err != nil {
		return err
	}
	dsn := os.Getenv("BELAY_MYSQL_DSN")
	if dsn == "" {
		return fmt.Errorf("BELAY_MYSQL_DSN: %w", stage.ErrNoStack)
	}
	err := shop.Seed(ctx, dsn, *rows, os.Stderr)
	if ctx.Err() != nil {
		return fmt.Errorf("interrupted: what is loaded stays, run seed again to go on (%w)", err)
	}
	return err
}

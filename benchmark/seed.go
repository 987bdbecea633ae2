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
	flags := flag.NewFlagSet("seed", flag.ContinueOnError)
	var rows int64
	rowsFlag(flags, &rows)
	if err := parse(flags, args); err != nil {
		return err
	}
	servers, err := stage.FromEnvironment(stage.EnvDSN)
	if err != nil {
		return err
	}
	err = shop.Seed(ctx, servers.DSN, rows, os.Stderr)
	if ctx.Err() != nil {
		return fmt.Errorf("interrupted: what is loaded stays, run seed again to continue (%w)", err)
	}
	return err
}

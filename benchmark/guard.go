package main

import (
	"context"
	"flag"
	"os"
	"time"

	"github.com/belaygo/belay/benchmark/internal/measure"
	"github.com/belaygo/belay/benchmark/internal/stage"
	"github.com/belaygo/belay/benchmark/internal/versus"
)

// runGuard measures on the servers of the environment, without HTTP.
func runGuard(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("guard", flag.ContinueOnError)
	cfg := versus.Config{Warm: 200 * time.Millisecond, Out: os.Stderr}
	numberFlag(flags, &cfg.Pool, "pool", 500, 1, 900, "database connections; database/sql by itself sets no limit")
	numberFlag(flags, &cfg.Rounds, "repeat", 9, 1, 1000, "rounds, of which the medians are taken")
	flags.DurationVar(&cfg.Span, "span", 700*time.Millisecond, "time of each case in each round")
	cases := flags.String("cases", "", "cases to measure, with commas between them; empty = all")
	json := flags.String("json", "", "file for the results")
	if err := parse(flags, args); err != nil {
		return err
	}
	if cfg.Span < 100*time.Millisecond {
		return usagef("-span %v: want at least 100ms", cfg.Span)
	}
	var err error
	if cfg.Cases, err = versus.Cases(*cases); err != nil {
		return usagef("-cases: %w", err)
	}
	if cfg.Servers, err = stage.FromEnvironment(stage.EnvDSN, stage.EnvRedis); err != nil {
		return err
	}
	if err := checkOutput(*json); err != nil {
		return err
	}
	report, err := versus.Run(ctx, cfg)
	if err != nil {
		return err
	}
	report.Print(os.Stdout)
	return measure.WriteJSON(*json, report.Figures)
}

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
	flags.DurationVar(&cfg.Delay, "delay", 0, "time that each round trip to the database and to Redis takes longer, as over a network")
	cases := flags.String("cases", "", "cases to measure, with commas between them; empty = all")
	json := flags.String("json", "", "file for the results")
	if err := parse(flags, args); err != nil {
		return err
	}
	if cfg.Span < 100*time.Millisecond {
		return usagef("-span %v: want at least 100ms", cfg.Span)
	}
	if cfg.Delay < 0 || cfg.Delay > time.Second {
		return usagef("-delay %v: want 0 to 1s", cfg.Delay)
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

// runWorker is a process of runGuard, which starts it.
func runWorker(ctx context.Context, args []string) error {
	if len(args) > 0 {
		return usagef("%s takes no arguments", versus.WorkerCommand)
	}
	return versus.Work(ctx, os.Stdin, os.Stdout)
}

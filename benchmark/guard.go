package main

import (
	"context"
	"flag"
	"os"
	"runtime/pprof"
	"time"

	"github.com/belaygo/belay/benchmark/internal/measure"
	"github.com/belaygo/belay/benchmark/internal/stage"
	"github.com/belaygo/belay/benchmark/internal/versus"
)

// runGuard measures on the servers of the environment, without HTTP.
func runGuard(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("guard", flag.ContinueOnError)
	cfg := versus.Config{Warm: 200 * time.Millisecond, Out: os.Stderr}
	flags.IntVar(&cfg.Pool, "pool", 500, "database connections; database/sql by itself sets no limit")
	flags.IntVar(&cfg.Rounds, "repeat", 9, "rounds, of which the medians are taken")
	flags.DurationVar(&cfg.Span, "span", 700*time.Millisecond, "time of each case in each round")
	cases := flags.String("cases", "", "cases to measure, with commas between them; empty = all")
	json := flags.String("json", "", "file for the results")
	profile := flags.String("cpuprofile", "", "file for a profile of this process")
	if err := parse(flags, args); err != nil {
		return err
	}
	switch {
	case cfg.Pool < 1 || cfg.Pool > 900:
		return usagef("-pool %d: want 1 to 900", cfg.Pool)
	case cfg.Rounds < 1:
		return usagef("-repeat %d: want at least 1", cfg.Rounds)
	case cfg.Span < 100*time.Millisecond:
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
	if *profile != "" {
		file, err := os.Create(*profile)
		if err != nil {
			return usagef("-cpuprofile: %w", err)
		}
		defer file.Close()
		if err := pprof.StartCPUProfile(file); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	report, err := versus.Run(ctx, cfg)
	if err != nil {
		return err
	}
	report.Print(os.Stdout)
	if *json == "" {
		return nil
	}
	return measure.WriteJSON(*json, report.Figures)
}

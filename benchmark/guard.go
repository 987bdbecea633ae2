package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime/pprof"
	"strings"
	"time"

	"github.com/belaygo/belay/benchmark/internal/measure"
	"github.com/belaygo/belay/benchmark/internal/stage"
	"github.com/belaygo/belay/benchmark/internal/versus"
)

// runGuard measures on the servers of the environment, without HTTP.
func runGuard(ctx context.Context, args []string) error {
	cfg, files, err := guardFlags(args)
	if err != nil {
		return err
	}
	stop, err := startProfile(files.profile)
	if err != nil {
		return err
	}
	defer stop()
	out, err := openIfNamed(files.json)
	if err != nil {
		return err
	}
	defer out.discard()
	report, err := versus.Run(ctx, cfg)
	if errors.Is(err, versus.ErrCase) {
		return usagef("-cases: %w", err)
	}
	if err != nil {
		return err
	}
	report.Print(os.Stdout)
	if out.path == "" {
		return nil
	}
	return measure.WriteJSON(out.path, report.Figures)
}

// guardFiles are what is written beside the standard output; "" = nothing.
type guardFiles struct{ json, profile string }

func guardFlags(args []string) (cfg versus.Config, files guardFiles, err error) {
	fs := flag.NewFlagSet("guard", flag.ContinueOnError)
	cfg = versus.Config{Warm: 200 * time.Millisecond, Out: os.Stderr}
	fs.IntVar(&cfg.Pool, "pool", 500, "database connections; database/sql by itself sets no limit")
	fs.IntVar(&cfg.Rounds, "repeat", 9, "rounds, of which the medians are taken")
	fs.DurationVar(&cfg.Span, "span", 700*time.Millisecond, "time of each case in each round")
	cases := fs.String("cases", "", "cases to measure, with commas between them; empty = all")
	fs.StringVar(&files.json, "json", "", "file for the results")
	fs.StringVar(&files.profile, "cpuprofile", "", "file for a profile of this process")
	if err := parse(fs, args); err != nil {
		return cfg, files, err
	}
	switch {
	case cfg.Pool < 1 || cfg.Pool > 900:
		return cfg, files, usagef("-pool %d: want 1 to 900", cfg.Pool)
	case cfg.Rounds < 1:
		return cfg, files, usagef("-repeat %d: want at least 1", cfg.Rounds)
	case cfg.Span < 100*time.Millisecond:
		return cfg, files, usagef("-span %v: want at least 100ms", cfg.Span)
	}
	if *cases != "" {
		cfg.Cases = strings.Split(*cases, ",")
	}
	cfg.DSN, cfg.Redis, err = guardServers()
	return cfg, files, err
}

// startProfile profiles this process until stop is called.
func startProfile(path string) (stop func(), err error) {
	if path == "" {
		return func() {}, nil
	}
	file, err := os.Create(path) //nolint:gosec // the user names it
	if err != nil {
		return nil, usagef("-cpuprofile: %w", err)
	}
	if err := pprof.StartCPUProfile(file); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return func() {
		pprof.StopCPUProfile()
		_ = file.Close()
	}, nil
}

// guardServers finds the two servers that are needed through the variables of
// scripts/stack env.
func guardServers() (dsn string, nodes []string, err error) {
	dsn = os.Getenv("BELAY_MYSQL_DSN")
	addrs := os.Getenv("BELAY_REDIS_ADDRS")
	switch {
	case dsn == "":
		return "", nil, fmt.Errorf("BELAY_MYSQL_DSN: %w", stage.ErrNoStack)
	case addrs == "":
		return "", nil, fmt.Errorf("BELAY_REDIS_ADDRS: %w", stage.ErrNoStack)
	}
	return dsn, strings.Split(addrs, ","), nil
}

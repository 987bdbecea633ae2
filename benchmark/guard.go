package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime/pprof"
	"strings"
	"time"

	"github.com/belaygo/belay/benchmark/internal/stage"
	"github.com/belaygo/belay/benchmark/internal/versus"
)

// runGuard measures on the servers of the environment, without HTTP.
func runGuard(ctx context.Context, args []string) (err error) {
	fs := flag.NewFlagSet("guard", flag.ContinueOnError)
	cfg := versus.Config{Warm: 200 * time.Millisecond, Out: os.Stderr}
	fs.IntVar(&cfg.Pool, "pool", 500, "database connections; database/sql by itself sets no limit")
	fs.IntVar(&cfg.Rounds, "repeat", 9, "rounds, of which the medians are taken")
	fs.DurationVar(&cfg.Span, "span", 700*time.Millisecond, "time of each case in each round")
	cases := fs.String("cases", "", "cases to measure, with commas between them; empty = all")
	path := fs.String("json", "", "file for the results")
	profile := fs.String("cpuprofile", "", "file for a profile of this process")
	if err := parse(fs, args); err != nil {
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
	if *cases != "" {
		cfg.Cases = strings.Split(*cases, ",")
	}
	if cfg.DSN, cfg.Redis, err = guardServers(); err != nil {
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
	if errors.Is(err, versus.ErrCase) {
		return usagef("-cases: %w", err)
	}
	if err != nil {
		return err
	}
	report.Print(os.Stdout)
	if *path == "" {
		return nil
	}
	text, err := json.MarshalIndent(report.Figures, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(*path, append(text, '\n'), 0o644) //nolint:gosec // results are to be read
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

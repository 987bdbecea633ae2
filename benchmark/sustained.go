package main

import (
	"context"
	"flag"
	"time"

	"github.com/belaygo/belay/benchmark/internal/sustained"
)

func runSustained(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("sustained", flag.ContinueOnError)
	var cfg sustained.Config
	check := stageFlags(flags, &cfg.Config)
	flags.DurationVar(&cfg.Duration, "duration", 30*time.Second, "time of each method and step")
	users := flags.String("users", "1,8,64,256,1000,2000", "concurrent users of the steps")
	keys := flags.String("keys", "uniform,hot,zipf", "how keys are chosen, some of: uniform,hot,zipf")
	repeats := flags.String("repeats", "at-once,sequence", "how orders with uniform keys come again, some of: at-once,sequence,none")
	flags.DurationVar(&cfg.Kill, "kill", 0, "kill a master this long after each step of belay has begun; 0 = never")
	if err := parse(flags, args); err != nil {
		return err
	}
	var err error
	if cfg.Concurrency, err = numbers(*users, 1, 10_000); err != nil {
		return usagef("-users: %w", err)
	}
	if cfg.Keys, err = among(*keys, sustained.Uniform, sustained.Hot, sustained.Zipf); err != nil {
		return usagef("-keys: %w", err)
	}
	if cfg.Repeats, err = among(*repeats, sustained.AtOnce, sustained.Sequence, sustained.None); err != nil {
		return usagef("-repeats: %w", err)
	}
	switch {
	case cfg.Duration < time.Second:
		return usagef("-duration %v: want at least 1s", cfg.Duration)
	case cfg.Kill < 0 || cfg.Kill >= cfg.Duration:
		return usagef("-kill %v: want 0 to -duration", cfg.Kill)
	}
	if err := check(); err != nil {
		return err
	}
	run, err := sustained.Run(ctx, cfg)
	return finish(ctx, run, cfg.JSON, err)
}

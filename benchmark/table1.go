package main

import (
	"context"
	"flag"
	"slices"

	"github.com/belaygo/belay/benchmark/internal/load"
	"github.com/belaygo/belay/benchmark/internal/shop"
	"github.com/belaygo/belay/benchmark/internal/table1"
)

func runTable1(ctx context.Context, args []string) error {
	fs := flag.NewFlagSet("table1", flag.ContinueOnError)
	common := newStageFlags(fs, "")
	users := fs.Int("users", 1000, "concurrent users, with one request each")
	stock := fs.Int("stock", 50, "items to sell")
	rounds := fs.Int("repeat", 5, "rounds; medians are reported")
	loader := fs.String("load", "built-in", "what sends the requests: built-in or jmeter")
	if err := parse(fs, args); err != nil {
		return err
	}
	cfg := table1.Config{Users: *users, Stock: *stock, Rounds: *rounds, JMeter: *loader == "jmeter"}
	switch {
	case *users < 20 || *users > 10_000 || *users%2 != 0:
		return usagef("-users %d: want an even number from 20 to 10000", *users)
	case *stock < 1 || *stock > *users:
		return usagef("-stock %d: want 1 to -users", *stock)
	case *rounds < 1 || *rounds > 1000:
		return usagef("-repeat %d: want 1 to 1000", *rounds)
	case *loader != "built-in" && *loader != "jmeter":
		return usagef("-load %q: want built-in or jmeter", *loader)
	case cfg.JMeter && *common.lb == "none":
		return usagef("-load jmeter needs -lb nginx: its threads know one address")
	}
	if cfg.JMeter {
		if err := load.FindJMeter(); err != nil {
			return err
		}
	}
	var err error
	var out output
	if cfg.TrialConfig, out, err = common.parsed(); err != nil {
		return err
	}
	if slices.Contains(cfg.Methods, shop.Belay) && cfg.Stage.Instances < 2 {
		out.discard()
		return usagef("-instances 1: belay needs another instance, which writes the order that is held up")
	}
	run, err := table1.Run(ctx, cfg)
	return finish(ctx, run, out, err)
}

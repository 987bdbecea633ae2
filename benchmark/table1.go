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
	flags := flag.NewFlagSet("table1", flag.ContinueOnError)
	var cfg table1.Config
	check := stageFlags(flags, &cfg.Config)
	numberFlag(flags, &cfg.Users, "users", 1000, 20, 10_000, "concurrent users, with one request each")
	numberFlag(flags, &cfg.Stock, "stock", 50, 1, 10_000, "items to sell")
	numberFlag(flags, &cfg.Rounds, "repeat", 5, 1, 1000, "rounds; medians are reported")
	loader := flags.String("load", "built-in", "what sends the requests: built-in or jmeter")
	if err := parse(flags, args); err != nil {
		return err
	}
	cfg.JMeter = *loader == "jmeter"
	switch {
	case cfg.Users%2 != 0:
		return usagef("-users %d: want an even number", cfg.Users)
	case cfg.Stock > cfg.Users:
		return usagef("-stock %d: want at most -users", cfg.Stock)
	case !cfg.JMeter && *loader != "built-in":
		return usagef("-load %q: want built-in or jmeter", *loader)
	case cfg.JMeter && flags.Lookup("lb").Value.String() == "none":
		return usagef("-load jmeter needs -lb nginx: its threads know one address")
	case cfg.JMeter:
		if err := load.FindJMeter(); err != nil {
			return err
		}
	}
	if err := check(); err != nil {
		return err
	}
	if slices.Contains(cfg.Methods, shop.Belay) && cfg.Instances < 2 {
		return usagef("-instances 1: belay needs another instance, which writes the order that is held up")
	}
	run, err := table1.Run(ctx, cfg)
	return finish(ctx, run, cfg.JSON, err)
}

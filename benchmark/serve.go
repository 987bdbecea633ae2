package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/belaygo/belay/benchmark/internal/shop"
	"github.com/belaygo/belay/benchmark/internal/stage"
)

func runServe(ctx context.Context, args []string) error {
	fs := flag.NewFlagSet("serve", flag.ContinueOnError)
	listen := fs.String("listen", "127.0.0.1:9480", "loopback address; port 0 takes a free one, which is printed")
	name := fs.String("name", "instance", "name of the instance in events")
	pool := fs.Int("pool", 64, "database connections")
	rows := rowsFlag(fs)
	if err := parse(fs, args); err != nil {
		return err
	}
	if err := checkRows(*rows); err != nil {
		return err
	}
	if *pool < 1 {
		return usagef("-pool %d: want at least 1", *pool)
	}
	cfg := shop.Config{Name: *name, Pool: *pool, Logger: slog.New(slog.NewTextHandler(os.Stderr, nil))}
	for _, s := range []struct {
		name string
		into *string
	}{{"BELAY_MYSQL_DSN", &cfg.DSN}, {"BELAY_AMQP_URL", &cfg.AMQP}} {
		if *s.into = os.Getenv(s.name); *s.into == "" {
			return fmt.Errorf("%s: %w", s.name, stage.ErrNoStack)
		}
	}
	nodes := os.Getenv("BELAY_REDIS_ADDRS")
	if nodes == "" {
		return fmt.Errorf("BELAY_REDIS_ADDRS: %w", stage.ErrNoStack)
	}
	cfg.Redis = strings.Split(nodes, ",")
	var err error
	if cfg.DSN, err = shop.DSN(cfg.DSN, *rows); err != nil {
		return err
	}
	return shop.Serve(ctx, *listen, cfg, os.Stdout)
}

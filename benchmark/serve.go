package main

import (
	"context"
	"flag"
	"log/slog"
	"os"

	"github.com/belaygo/belay/benchmark/internal/shop"
	"github.com/belaygo/belay/benchmark/internal/stage"
)

func runServe(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("serve", flag.ContinueOnError)
	cfg := shop.Config{Logger: slog.New(slog.NewTextHandler(os.Stderr, nil))}
	listen := flags.String("listen", "127.0.0.1:9480", "loopback address; port 0 takes a free one, which is printed")
	flags.StringVar(&cfg.Name, "name", "instance", "name of the instance in events")
	numberFlag(flags, &cfg.Pool, "pool", 64, 1, 900, "database connections")
	var rows int64
	rowsFlag(flags, &rows)
	if err := parse(flags, args); err != nil {
		return err
	}
	servers, err := stage.FromEnvironment(stage.EnvDSN, stage.EnvAMQP, stage.EnvRedis)
	if err != nil {
		return err
	}
	cfg.DSN, cfg.Database, cfg.AMQP, cfg.Redis = servers.DSN, shop.Database(rows), servers.AMQP, servers.Redis
	return shop.Serve(ctx, *listen, cfg, os.Stdout)
}

package main

import (
	"context"
	"fmt"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/intake"
	"github.com/belaygo/belay/internal/rabbit"
)

func topology(ctx context.Context, c *call) error {
	if err := intake.Declare(ctx, c.cfg.AMQPURL); err != nil {
		return err
	}
	_, err := fmt.Fprintf(c.stdout, "declared exchange %s with queue %s, and exchange %s with queue %s\n",
		rabbit.Exchange, rabbit.Queue, intake.DeadExchange, intake.DeadQueue)
	return err
}

func checkConfig(_ context.Context, c *call) error {
	if err := c.cfg.Show(c.stdout); err != nil {
		return err
	}
	for _, r := range c.cfg.Redis {
		fmt.Fprintf(c.stdout, "redis %s: %d nodes named\n", r.Name, len(r.Nodes))
	}
	for _, r := range c.cfg.Receivers {
		fmt.Fprintf(c.stdout, "receiver %s: %s\n", r.Name, r.Kind)
	}
	_, err := fmt.Fprintln(c.stdout, "the settings are right")
	return err
}

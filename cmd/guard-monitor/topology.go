package main

import (
	"context"
	"errors"
	"fmt"

	"go.yaml.in/yaml/v3"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/intake"
	"github.com/belaygo/belay/internal/rabbit"
)

func topology(ctx context.Context, c *call) error {
	if err := intake.Declare(ctx, string(c.cfg.AMQPURL)); err != nil {
		return err
	}
	_, err := fmt.Fprintf(c.stdout, "declared exchange %s with queue %s, and exchange %s with queue %s\n",
		rabbit.Exchange, rabbit.Queue, intake.DeadExchange, intake.DeadQueue)
	return err
}

func checkConfig(_ context.Context, c *call) error {
	out := yaml.NewEncoder(c.stdout)
	out.SetIndent(2)
	if err := errors.Join(out.Encode(c.cfg), out.Close()); err != nil {
		return err
	}
	_, err := fmt.Fprintln(c.stdout, "# The settings are right.")
	return err
}

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/belaygo/belay/internal/monitor"
	"github.com/belaygo/belay/internal/monitor/store"
	"github.com/belaygo/belay/internal/monitor/web"
	"github.com/belaygo/belay/notify/rabbitmq"
)

const (
	prefetch    = 50              // messages taken ahead of the store
	stopTimeout = 9 * time.Second // for the parts; the store closes after them
)

func serve(ctx context.Context, c *call) (err error) {
	logger := c.logger()
	consumer, err := rabbitmq.NewConsumer(c.cfg.AMQPURL, rabbitmq.ConsumerConfig{
		Prefetch: prefetch,
		Logger:   logger.With("server", "rabbitmq"),
	})
	if err != nil {
		return usagef("amqp_url: %w", err)
	}
	st, err := store.Open(ctx, c.cfg.DB)
	if err != nil {
		return fmt.Errorf("db: %w", err)
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	mon, err := monitor.New(ctx, monitor.Config{Store: st, Out: c.stdout, Logger: logger})
	if err != nil {
		return err
	}
	metrics, err := newRegistry(mon, consumer)
	if err != nil {
		return err
	}
	handler, err := web.NewHandler(web.Config{Store: st, Broker: consumer, Metrics: metrics, Logger: logger})
	if err != nil {
		return err
	}
	ln, err := listen(ctx, c.cfg.Listen)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	fmt.Fprintf(c.stderr, "guard-monitor: listening on http://%s\n", ln.Addr())
	return together(ctx,
		func(ctx context.Context) error { return web.Serve(ctx, ln, handler, logger) },
		func(ctx context.Context) error { return consumer.Run(ctx, mon.Ingest) },
	)
}

// listen makes sure that a name led to a loopback address.
func listen(ctx context.Context, addr string) (net.Listener, error) {
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	if tcp, ok := ln.Addr().(*net.TCPAddr); !ok || !tcp.IP.IsLoopback() {
		return nil, errors.Join(fmt.Errorf("%q is %v, not a loopback address", addr, ln.Addr()), ln.Close())
	}
	return ln, nil
}

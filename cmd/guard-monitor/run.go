package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
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

// run does what args ask for. It returns nil after ctx ended and all is
// stopped.
func run(ctx context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer) error {
	c, err := parse(args, getenv)
	switch {
	case err != nil:
		return err
	case c.help:
		return printUsage(stdout)
	case c.version:
		return printVersion(stdout)
	}
	if err := c.validate(); err != nil {
		return err
	}
	return serve(ctx, c, stdout, stderr)
}

func serve(ctx context.Context, c config, stdout, stderr io.Writer) (err error) {
	logger := slog.New(slog.NewTextHandler(stderr, nil))
	consumer, err := rabbitmq.NewConsumer(c.amqpURL, rabbitmq.ConsumerConfig{
		Prefetch: prefetch,
		Logger:   logger.With("server", "rabbitmq"),
	})
	if err != nil {
		return usagef("-amqp-url: %w", err)
	}
	st, err := store.Open(ctx, c.db)
	if err != nil {
		return fmt.Errorf("-db: %w", err)
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	mon, err := monitor.New(ctx, monitor.Config{Store: st, Out: stdout, Logger: logger})
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
	ln, err := listen(ctx, c.listen)
	if err != nil {
		return fmt.Errorf("-listen: %w", err)
	}
	fmt.Fprintf(stderr, "guard-monitor: listening on http://%s\n", ln.Addr())
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

// together runs the parts until ctx ends or one of them returns, then stops
// the others and waits for all of them, at most stopTimeout.
func together(ctx context.Context, parts ...func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	returned := make(chan error, len(parts))
	for _, part := range parts {
		go func() { returned <- part(ctx) }()
	}
	var failed error
	var late <-chan time.Time
	stopping := ctx.Done()
	for running := len(parts); running > 0; {
		select {
		case err := <-returned:
			running--
			if !errors.Is(err, context.Canceled) {
				failed = errors.Join(failed, err)
			}
			cancel()
		case <-stopping:
			stopping, late = nil, time.After(stopTimeout)
		case <-late:
			return errors.Join(failed, fmt.Errorf("stop: not done after %v", stopTimeout))
		}
	}
	return failed
}

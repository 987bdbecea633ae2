package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/config"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/intake"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/monitor"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/store"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/web"
	"github.com/belaygo/belay/internal/heartbeat"
	"github.com/belaygo/belay/notify"
)

const prefetch = 50 // messages taken ahead of the store

// sources are where events come from: at least one is not nil.
type sources struct {
	consumer *intake.Consumer
	endpoint *intake.Endpoint
	// unstored is when a heartbeat from the broker could not be stored last, in Unix
	// nanoseconds, 0 if each could. The endpoint knows that of its own.
	unstored *atomic.Int64
}

// newSources returns the sources that the settings name, for the events of mon.
func newSources(cfg *config.Config, mon *monitor.Monitor, logger *slog.Logger) (s sources, err error) {
	s.unstored = new(atomic.Int64)
	if cfg.AMQPURL != "" {
		s.consumer, err = intake.New(string(cfg.AMQPURL), intake.Config{
			Prefetch: prefetch,
			Heartbeat: func(ctx context.Context, h heartbeat.Heartbeat, sender string) {
				s.noteUnstored(mon.Heard(ctx, h, sender))
			},
			Admit:  cfg.Admit,
			Logger: logger.With("server", "rabbitmq"),
		})
		if err != nil {
			return s, usagef("amqp_url: %w", err)
		}
	}
	if len(cfg.Ingest) == 0 {
		return s, nil
	}
	var senders []intake.Sender
	for _, e := range cfg.Ingest {
		senders = append(senders, intake.Sender{
			Name: e.Name, Token: string(e.Token), Services: e.Services, EventsPerSecond: e.EventsPerSecond, Burst: e.Burst,
		})
	}
	s.endpoint, err = intake.NewEndpoint(intake.EndpointConfig{
		Senders: senders, Logger: logger.With("server", "ingest"),
		Take: func(ctx context.Context, ev notify.Event, raw []byte, sender string) (bool, error) {
			added, err := mon.Take(ctx, ev, raw, sender)
			return added, rejecting(err)
		},
		Heartbeat: func(ctx context.Context, h heartbeat.Heartbeat, sender string) error {
			return rejecting(mon.Heard(ctx, h, sender))
		},
	})
	if err != nil {
		return s, usagef("ingest: %w", err)
	}
	return s, nil
}

// run reads the broker, if there is one, until ctx ends. The endpoint is the web server's.
func (s sources) run(ctx context.Context, mon *monitor.Monitor) error {
	if s.consumer == nil {
		<-ctx.Done()
		return ctx.Err()
	}
	return s.consumer.Run(ctx, func(ctx context.Context, ev notify.Event, raw []byte, sender string) error {
		return rejecting(mon.Ingest(ctx, ev, raw, sender))
	})
}

// rejecting returns err, which matches intake.ErrReject if the store will not take more
// services from a sender.
func rejecting(err error) error {
	if errors.Is(err, store.ErrManyServices) {
		return fmt.Errorf("%w: %w", intake.ErrReject, err)
	}
	return err
}

// connected reports whether events can arrive from all sources.
func (s sources) connected() bool {
	return (s.consumer == nil || s.consumer.Err() == nil) && (s.endpoint == nil || s.endpoint.Err() == nil)
}

// listening returns 0 while not both events and heartbeats can arrive from all sources, and else a number
// that is another one after each break in which heartbeats may have waited: they wait at the broker only.
func (s sources) listening() int {
	switch {
	case s.endpoint != nil && !s.endpoint.Listening():
		return 0
	case s.consumer != nil:
		return s.consumer.Session()
	}
	return 1
}

// noteUnstored notes that a heartbeat was not stored. The next will come soon; until then, no
// service is silent.
func (s sources) noteUnstored(err error) {
	if err != nil && !errors.Is(err, store.ErrManyServices) { // whose services are not known
		s.unstored.Store(time.Now().UnixNano())
	}
}

// rejectedAt returns when a heartbeat of a service was rejected for the limits of its sender,
// or may have been one of those that could not be stored.
func (s sources) rejectedAt(service string) (at time.Time) {
	if s.endpoint != nil {
		at = s.endpoint.RejectedAt(service)
	}
	if n := s.unstored.Load(); n > 0 && time.Unix(0, n).After(at) {
		return time.Unix(0, n)
	}
	return at
}

// show gives the pages the sources that there are.
func (s sources) show(pages *web.Config) {
	if s.consumer != nil {
		pages.Broker = s.consumer
	}
	if s.endpoint != nil {
		pages.Endpoint = s.endpoint
	}
}

func (s sources) collectors() (all []prometheus.Collector) {
	if s.consumer != nil {
		all = append(all, s.consumer)
	}
	if s.endpoint != nil {
		all = append(all, s.endpoint)
	}
	return all
}

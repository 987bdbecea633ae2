package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/config"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/intake"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/monitor"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/web"
	"github.com/belaygo/belay/internal/heartbeat"
)

const prefetch = 50 // messages taken ahead of the store

// sources are where events come from: at least one is not nil.
type sources struct {
	consumer *intake.Consumer
	endpoint *intake.Endpoint
}

// newSources returns the sources that the settings name, for the events of mon.
func newSources(cfg *config.Config, mon *monitor.Monitor, logger *slog.Logger) (s sources, err error) {
	if cfg.AMQPURL != "" {
		s.consumer, err = intake.New(string(cfg.AMQPURL), intake.Config{
			Prefetch:  prefetch,
			Heartbeat: func(ctx context.Context, h heartbeat.Heartbeat) { _ = mon.Heard(ctx, h) }, // the next will come soon
			Admit:     cfg.Admit,
			Logger:    logger.With("server", "rabbitmq"),
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
		Senders: senders, Take: mon.Take, Heartbeat: mon.Heard, Logger: logger.With("server", "ingest"),
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
	return s.consumer.Run(ctx, mon.Ingest)
}

// connected reports whether events can arrive from all sources.
func (s sources) connected() bool {
	return (s.consumer == nil || s.consumer.Err() == nil) && (s.endpoint == nil || s.endpoint.Err() == nil)
}

// listening reports whether events and heartbeats can arrive from all sources.
func (s sources) listening() bool {
	return (s.consumer == nil || s.consumer.Listening()) && (s.endpoint == nil || s.endpoint.Listening())
}

// rejectedAt returns when a heartbeat of a service was rejected for the limits of its sender.
func (s sources) rejectedAt(service string) time.Time {
	if s.endpoint == nil {
		return time.Time{}
	}
	return s.endpoint.RejectedAt(service)
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

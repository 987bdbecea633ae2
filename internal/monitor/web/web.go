// Package web serves guard-monitor's page, its health and its metrics.
//
// It is made for a listener on a loopback address: there is no authentication,
// and only requests that name a loopback host are answered, so that a web site
// in the operator's browser cannot read it through a name of its own that
// resolves to 127.0.0.1. All routes are read-only.
package web

import (
	"context"
	"errors"
	"log/slog"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/belaygo/belay/internal/monitor/store"
	"github.com/belaygo/belay/notify"
)

// Store is what the page reads. *store.Store is one.
type Store interface {
	Ping(ctx context.Context) error
	Recent(ctx context.Context, limit int) ([]store.Received, error)
	Counts(ctx context.Context) (map[notify.Verdict]store.Count, error)
}

// Broker tells whether events can arrive.
type Broker interface {
	Connected() bool
}

// Config configures a handler. All fields but Logger are required.
type Config struct {
	Store   Store
	Broker  Broker
	Metrics prometheus.Gatherer
	Logger  *slog.Logger // default: silent
}

// NewHandler returns the handler of all routes: /, /healthz and /metrics.
func NewHandler(cfg Config) (http.Handler, error) {
	switch {
	case cfg.Store == nil:
		return nil, errors.New("web: Config.Store is nil")
	case cfg.Broker == nil:
		return nil, errors.New("web: Config.Broker is nil")
	case cfg.Metrics == nil:
		return nil, errors.New("web: Config.Metrics is nil")
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /{$}", page{cfg})
	mux.Handle("GET /healthz", health{cfg})
	mux.Handle("GET /metrics", promhttp.HandlerFor(cfg.Metrics, promhttp.HandlerOpts{
		ErrorLog: slog.NewLogLogger(cfg.Logger.Handler(), slog.LevelWarn),
	}))
	return protect(mux), nil
}

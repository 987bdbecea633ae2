// Package web serves guard-monitor's pages, its JSON API, its health and its
// metrics.
//
// # Access
//
// Only requests for a known host are answered. Otherwise a web site in the
// operator's browser could read the monitor through a name of its own that
// resolves to this address (DNS rebinding). With Config.Auth, every route but /healthz
// and /livez requires a name and a password, live connections included; a token
// opens /metrics and nothing else. Logins that fail are limited, by name and address,
// and take the same time for all names. Without Config.Auth, the caller of NewHandler
// must listen on a loopback address.
//
// Programs post events to one route with tokens of their own, which open nothing else.
// It is answered for every host and whatever Config.Writes and Config.Auth say: a web
// site can't know a token.
//
// Nothing can be changed unless Config.Writes is set. Then people acknowledge and
// silence incidents on the pages, and programs silence them through the API. Each change
// leaves an audit line. A browser may not send one from another site (net/http's
// cross-origin protection). Bodies of requests are bounded.
//
// All text of events, keys and payloads is hostile. Templates escape it.
// Characters that would command a terminal or change the direction of writing
// are shown as escapes.
//
// # How a page stays up to date
//
// A page is complete without JavaScript. With it, the page keeps one connection
// (server-sent events) that reports only that something is new. The script then
// fetches the same page again and replaces the parts that differ. One loop
// (Handler.Run) reads the store for all connections, once a second. Answers to
// forms are not fetched again.
package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/store"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/watch"
)

// Store has what the pages read and people change. *store.Store implements it.
type Store interface {
	Ping(ctx context.Context) error
	Marks(ctx context.Context) (store.Marks, error)
	Current(ctx context.Context) (store.Snapshot, error)
	Events(ctx context.Context, f store.EventFilter) ([]store.Received, error)
	CountEvents(ctx context.Context, f store.EventFilter) (n int, more bool, err error)
	EventsPer(ctx context.Context, from time.Time, step time.Duration, n int) ([]store.Bounded, error)
	Event(ctx context.Context, id string) (store.Received, []byte, error)
	Incidents(ctx context.Context, f store.IncidentFilter) ([]incident.Incident, error)
	CountIncidents(ctx context.Context, f store.IncidentFilter) (n int, more bool, err error)
	Incident(ctx context.Context, id string) (incident.Incident, error)
	Notifications(ctx context.Context, incidentID string, n int) ([]store.Notification, error)
	AuditOf(ctx context.Context, subject string, n int) ([]store.AuditLine, error)
	Settlements(ctx context.Context, incidentID string, n int) ([]incident.Settlement, error)
	Timeline(ctx context.Context, f store.TimelineFilter) ([]watch.Entry, error)
	Heartbeats(ctx context.Context) ([]incident.Heartbeat, error)
	Switching(ctx context.Context) ([]incident.Heartbeat, error)
	Switches(ctx context.Context, since time.Time) ([]incident.Switch, error)
	Messages(ctx context.Context) ([]incident.Messages, error)
	Calls(ctx context.Context) ([]incident.Calls, error)
	AllSilences(ctx context.Context, p store.Page) ([]incident.Silence, error)
	AuditLines(ctx context.Context, p store.Page) ([]store.AuditLine, error)

	Acknowledge(ctx context.Context, id, by string, at time.Time) error
	Unacknowledge(ctx context.Context, id string, at time.Time) error
	Settle(ctx context.Context, incidentID string, x incident.Settlement) error
	AddSilence(ctx context.Context, s incident.Silence) (int64, error)
	EndSilence(ctx context.Context, id int64, by string, at time.Time) error
	Audit(ctx context.Context, l store.AuditLine) error
}

// Endpoint takes events over HTTP. *intake.Endpoint implements it.
type Endpoint interface {
	http.Handler
	// Err matches intake.ErrHandler while the store does not take events.
	Err() error
}

// Broker reports whether events arrive. *intake.Consumer implements it.
type Broker interface {
	// Err is nil while they do, and matches intake.ErrHandler where the broker
	// has them and the store does not take them.
	Err() error
	// DeadLetters is how many messages could not be taken, as last counted.
	DeadLetters() (n int, known bool)
}

// Clusters returns the state of the watched Redis servers. *watch.Watcher implements it.
type Clusters interface {
	Clusters() []watch.Cluster
}

// Config configures a Handler. Store, Metrics, and Broker or Endpoint are required.
type Config struct {
	Store    Store
	Broker   Broker   // default: there is none
	Endpoint Endpoint // of POST /api/v1/events and GET /api/v1/ingest; default: none
	Metrics  prometheus.Gatherer
	Clusters Clusters // default: no Redis is watched

	Auth   *Auth // default: requests need no authentication
	Writes bool  // whether incidents may be acknowledged and silenced; default false

	// ExternalURL is where people reach the pages, without a slash at the end. Its
	// host is answered, and all links begin with its path. Default: none.
	ExternalURL string
	// AnyAddress answers requests for IP addresses that are not loopback, too.
	AnyAddress bool
	// TrustedProxies are the addresses of proxies that name their clients in
	// X-Forwarded-For. Default: none.
	TrustedProxies []netip.Prefix
	DocsURL        string         // of docs/alerts, with a slash at the end; default: the file name without a link
	Location       *time.Location // of times on pages; default UTC
	MaxLive        int            // live connections; default 100
	Every          time.Duration  // how often the store is read for news; default 1 s
	Logger         *slog.Logger   // default: slog.Default()

	copied bool // for WriteFiles
}

func (cfg Config) withDefaults() (Config, error) {
	switch {
	case cfg.Store == nil:
		return cfg, errors.New("web: Config.Store is nil")
	case cfg.Broker == nil && cfg.Endpoint == nil:
		return cfg, errors.New("web: Config.Broker and Config.Endpoint are nil")
	case cfg.Metrics == nil:
		return cfg, errors.New("web: Config.Metrics is nil")
	case cfg.MaxLive < 0:
		return cfg, fmt.Errorf("web: Config.MaxLive is %d", cfg.MaxLive)
	case cfg.Every < 0:
		return cfg, fmt.Errorf("web: Config.Every is %v", cfg.Every)
	}
	cfg.Logger, cfg.Location = cmp.Or(cfg.Logger, slog.Default()), cmp.Or(cfg.Location, time.UTC)
	cfg.MaxLive, cfg.Every = cmp.Or(cfg.MaxLive, 100), cmp.Or(cfg.Every, time.Second)
	return cfg, nil
}

// Handler answers all requests. It is safe for concurrent use.
type Handler struct {
	cfg     Config
	prefix  string // path of ExternalURL, without a slash at the end
	guarded http.Handler
	hub     *hub
	trend   cache[perStep]
	spans   caches[perStep]
	counted caches[string]
}

package web

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/belaygo/belay/internal/ingest"
)

// NewHandler returns the handler of all routes. Run keeps its pages live.
func NewHandler(cfg Config) (*Handler, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	h := &Handler{cfg: cfg, hub: newHub(cfg)}
	external, err := url.Parse(cfg.ExternalURL)
	if err != nil {
		return nil, fmt.Errorf("web: Config.ExternalURL: %w", err)
	}
	h.prefix = strings.TrimRight(external.Path, "/")
	h.guarded, err = h.guard(h.routes(), external)
	if err != nil {
		return nil, err
	}
	return h, nil
}

func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.guarded.ServeHTTP(w, r) }

// Run notifies open pages of news until ctx ends; then it ends their live
// connections and returns ctx.Err(). It may run once.
func (h *Handler) Run(ctx context.Context) error { return h.hub.run(ctx) }

func (h *Handler) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", h.healthz)
	mux.HandleFunc("GET /livez", livez)
	mux.Handle("GET /metrics", promhttp.HandlerFor(h.cfg.Metrics, promhttp.HandlerOpts{
		ErrorLog: slog.NewLogLogger(h.cfg.Logger.Handler(), slog.LevelWarn),
	}))
	mux.HandleFunc("GET /assets/{name}", asset)
	mux.HandleFunc("GET /live", h.live)
	mux.HandleFunc("GET /language", h.language)

	mux.HandleFunc("GET /{$}", h.page("overview", h.overview))
	mux.HandleFunc("GET /incidents", h.page("incidents", h.incidents))
	mux.HandleFunc("GET /incidents/{id}", h.page("incident", h.incident))
	mux.HandleFunc("GET /events", h.page("events", h.events))
	mux.HandleFunc("GET /events/{id}", h.page("event", h.event))
	mux.HandleFunc("GET /event", h.page("event", h.event)) // ?id=, see eventPath
	mux.HandleFunc("GET /timeline", h.page("timeline", h.timeline))
	mux.HandleFunc("GET /clusters", h.page("clusters", h.clusters))

	h.actRoutes(mux)
	h.apiRoutes(mux)
	return mux
}

// guard puts the checks in front of the routes, the cheapest first.
func (h *Handler) guard(routes http.Handler, external *url.URL) (http.Handler, error) {
	cross := http.NewCrossOriginProtection()
	if external.Host != "" {
		if err := cross.AddTrustedOrigin(external.Scheme + "://" + external.Host); err != nil {
			return nil, err
		}
	}
	next := cross.Handler(h.readOnly(routes))
	next = h.cfg.Auth.require(next, h.cfg.Logger)
	next = h.strip(next)
	return h.proxied(h.takeEvents(h.protect(next, external))), nil
}

// takeEvents answers the routes for programs that report, before all checks that are for
// people and their browsers: they have tokens of their own.
func (h *Handler) takeEvents(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !forEndpoint(r.Method, strings.TrimPrefix(r.URL.Path, h.prefix)):
			next.ServeHTTP(w, r)
		case h.cfg.Endpoint == nil:
			reply(w, http.StatusNotFound, apiError{"this guard-monitor takes no events over HTTP: see the setting ingest"})
		default:
			h.cfg.Endpoint.ServeHTTP(w, r)
		}
	})
}

// forEndpoint reports whether a request posts an event, or checks whether one would be taken.
func forEndpoint(method, path string) bool {
	return method == http.MethodPost && path == ingest.Path || method == http.MethodGet && path == ingest.CheckPath
}

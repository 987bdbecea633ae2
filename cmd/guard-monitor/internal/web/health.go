package web

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"

	events "github.com/belaygo/belay/cmd/guard-monitor/internal/intake"
)

// intake says whether events arrive, and if not, where they stop.
type intake struct {
	Broker  *bool `json:"broker_connected,omitempty"` // nil if there is no broker
	Storing bool  `json:"store_takes_events"`
}

// Connected is true where there is no broker, too: events do not stop there.
func (in intake) Connected() bool { return in.Broker == nil || *in.Broker }

func (cfg Config) intake() intake {
	in := intake{Storing: cfg.Endpoint == nil || cfg.Endpoint.Err() == nil}
	if cfg.Broker != nil {
		err := cfg.Broker.Err()
		refused := errors.Is(err, events.ErrHandler)
		connected := err == nil || refused
		in.Broker, in.Storing = &connected, in.Storing && !refused
	}
	return in
}

// deadLetters returns how many there are. Without a broker they are with their senders.
func (cfg Config) deadLetters() (n int, known bool) {
	if cfg.Broker == nil {
		return 0, false
	}
	return cfg.Broker.DeadLetters()
}

type healthBody struct {
	Status string `json:"status"` // ok or failing
	Broker string `json:"broker"` // ok, not connected, or none
	Store  string `json:"store"`  // ok, not answering, or not taking events
}

// healthz answers 200 if the store answers and takes events, and the broker, if there is
// one, is connected, else 503. The body names each part.
func (h *Handler) healthz(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), storeTimeout)
	defer cancel()
	body, code := healthBody{Status: "ok", Broker: "ok", Store: "ok"}, http.StatusOK
	in, failing := h.cfg.intake(), false
	switch {
	case in.Broker == nil:
		body.Broker = "none"
	case !in.Connected():
		body.Broker, failing = "not connected", true
	}
	if !in.Storing {
		body.Store = "not taking events"
	}
	if err := h.cfg.Store.Ping(ctx); err != nil {
		h.cfg.Logger.LogAttrs(ctx, slog.LevelError, "store does not answer", slog.Any("error", err))
		body.Store = "not answering"
	}
	if failing || body.Store != "ok" {
		body.Status, code = "failing", http.StatusServiceUnavailable
	}
	reply(w, code, body)
}

// livez answers 200: a broker or a store that fails is no reason to restart
// guard-monitor, nor to keep people from its pages.
func livez(w http.ResponseWriter, _ *http.Request) { reply(w, http.StatusOK, "ok") }

// reply writes v. JSON escapes what could be markup, and nosniff keeps browsers
// from looking for it.
func reply(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(v) // the client may have gone
}

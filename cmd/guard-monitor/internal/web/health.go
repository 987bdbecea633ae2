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
	Connected bool `json:"broker_connected"`
	Storing   bool `json:"store_takes_events"`
}

func (cfg Config) intake() intake {
	err := cfg.Broker.Err()
	refused := errors.Is(err, events.ErrHandler)
	return intake{Connected: err == nil || refused, Storing: !refused}
}

type healthBody struct {
	Status string `json:"status"` // ok or failing
	Broker string `json:"broker"` // ok or not connected
	Store  string `json:"store"`  // ok, not answering, or not taking events
}

// healthz answers 200 if the store answers and takes events, and the broker is
// connected, else 503. The body names each part.
func (h *Handler) healthz(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), storeTimeout)
	defer cancel()
	body, code := healthBody{Status: "ok", Broker: "ok", Store: "ok"}, http.StatusOK
	in := h.cfg.intake()
	if !in.Connected {
		body.Broker = "not connected"
	}
	if !in.Storing {
		body.Store = "not taking events"
	}
	if err := h.cfg.Store.Ping(ctx); err != nil {
		h.cfg.Logger.LogAttrs(ctx, slog.LevelError, "store does not answer", slog.Any("error", err))
		body.Store = "not answering"
	}
	if body.Broker != "ok" || body.Store != "ok" {
		body.Status, code = "failing", http.StatusServiceUnavailable
	}
	reply(w, code, body)
}

// reply writes v. JSON escapes what could be markup, and nosniff keeps browsers
// from looking for it.
func reply(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(v) // the client may have gone
}

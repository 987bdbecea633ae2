package web

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"time"
)

const storeTimeout = 5 * time.Second

// health answers 200 if the store answers and the broker is connected, else
// 503. The body names each part.
type health struct{ cfg Config }

type healthBody struct {
	Status string `json:"status"` // ok or failing
	Broker string `json:"broker"` // ok or not connected
	Store  string `json:"store"`  // ok or not answering
}

func (h health) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), storeTimeout)
	defer cancel()
	body, code := healthBody{Status: "ok", Broker: "ok", Store: "ok"}, http.StatusOK
	if !h.cfg.Broker.Connected() {
		body.Broker = "not connected"
	}
	if err := h.cfg.Store.Ping(ctx); err != nil {
		h.cfg.Logger.LogAttrs(ctx, slog.LevelError, "store does not answer", slog.Any("error", err))
		body.Store = "not answering"
	}
	if body.Broker != "ok" || body.Store != "ok" {
		body.Status, code = "failing", http.StatusServiceUnavailable
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body) // the client may have gone
}

package web

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"time"
)

const (
	beat       = 15 * time.Second // between two signs of life on a live connection
	streamLife = 10 * time.Minute // then the browser connects again, and authenticates again
	writeLimit = 10 * time.Second // for a client that does not read
)

// live is the connection of an open page.
func (h *Handler) live(w http.ResponseWriter, r *http.Request) {
	select {
	case h.hub.slots <- struct{}{}:
		defer func() { <-h.hub.slots }()
	default:
		w.Header().Set("Retry-After", "30")
		http.Error(w, "too many live connections", http.StatusServiceUnavailable)
		return
	}
	header := w.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("X-Accel-Buffering", "no")
	ctx, cancel := context.WithTimeout(r.Context(), streamLife)
	defer cancel()
	if err := h.follow(ctx, w); err != nil {
		h.cfg.Logger.LogAttrs(ctx, slog.LevelDebug, "live connection ended", slog.Any("error", err))
	}
}

// follow sends the news until ctx or the hub ends.
func (h *Handler) follow(ctx context.Context, w http.ResponseWriter) error {
	control := http.NewResponseController(w)
	// Each message has a time of its own, since the server's limit is for pages.
	send := func(format string, args ...any) error {
		if err := control.SetWriteDeadline(time.Now().Add(writeLimit)); err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, format, args...); err != nil {
			return err
		}
		return control.Flush()
	}
	sign := time.NewTicker(beat)
	defer sign.Stop()
	told := news{Letters: -1}
	err := send("retry: 3000\n\n")
	for err == nil {
		latest, changed := h.hub.now()
		if latest != told && latest != (news{}) {
			data, _ := json.Marshal(latest) // numbers and booleans only
			told, err = latest, send("event: news\ndata: %s\n\n", data)
			continue
		}
		select {
		case <-changed:
		case <-sign.C:
			err = send(": alive\n\n")
		case <-h.hub.done:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return err
}

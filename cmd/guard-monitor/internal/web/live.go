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
	s := stream{w: w, control: http.NewResponseController(w)}
	if err := s.follow(r.Context(), h.hub); err != nil {
		h.cfg.Logger.LogAttrs(r.Context(), slog.LevelDebug, "live connection ended", slog.Any("error", err))
	}
}

type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

func (s stream) follow(ctx context.Context, b *hub) error {
	sign := time.NewTicker(beat)
	defer sign.Stop()
	end := time.NewTimer(streamLife)
	defer end.Stop()
	if err := s.send("retry: 3000\n\n"); err != nil {
		return err
	}
	told := news{Letters: -1}
	for {
		latest, changed := b.now()
		if latest != told && latest != (news{}) {
			data, err := json.Marshal(latest)
			if err != nil {
				return err
			}
			if err := s.send(fmt.Sprintf("event: news\ndata: %s\n\n", data)); err != nil {
				return err
			}
			told = latest
		}
		select {
		case <-changed:
		case <-sign.C:
			if err := s.send(": alive\n\n"); err != nil {
				return err
			}
		case <-end.C:
			return nil
		case <-b.done:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// send gives each message its own time, since the server's limit is for pages.
func (s stream) send(text string) error {
	if err := s.control.SetWriteDeadline(time.Now().Add(writeLimit)); err != nil {
		return err
	}
	if _, err := s.w.Write([]byte(text)); err != nil {
		return err
	}
	return s.control.Flush()
}

package notify_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/belaygo/belay/notify"
)

// An event is logged by the names of its JSON, with numbers as numbers and times in
// UTC. What is empty is left out.
func TestEventIsLoggedWhole(t *testing.T) {
	whole := examples()["overlap"]
	whole.FirstToken, whole.Loss, whole.Place.Entry = 41, notify.LossMaxHold, "shop:order:2026-0042"
	empty := notify.Event{Index: []string{}}
	for want, ev := range map[string]notify.Event{
		`{"id":"0199a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b","verdict":"overlap","outcome":"refused","service":"orders","instance":"orders-7d9f/1",` +
			`"key":"order:2026-0042","table":"stocks","index":["id"],"versions":{"expected":7,"found":8},"owner":"9f6c1f0e-52d1-4c0b-9d55-0a6d3b1c7e21:1",` +
			`"token":1838339483648000000,"first_token":41,"acquired_at":"2026-11-21T09:30:02Z","ttl_ms":30000,"deadline":"2026-11-21T09:30:31Z","loss":"max_hold",` +
			`"caught_at":"2026-11-21T09:30:07.25Z","place":{"node":"10.0.0.11:6379","slot":8461,"entry":"shop:order:2026-0042"},"holder_at_conflict":"other",` +
			`"holder_owner":"5b0de1c2-7a34-4f7e-8a2c-1f2e3d4c5b6a:1","count":1,"trace_id":"4bf92f3577b34da6a3ce929d0e0e4736","library":"v0.1.0",` +
			`"traceparent":"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}`: whole,
		`{"id":"","verdict":"","outcome":"","service":"","caught_at":"0001-01-01T00:00:00Z","count":0}`: empty,
	} {
		var log bytes.Buffer
		slog.New(slog.NewJSONHandler(&log, nil)).Info("", "event", ev)
		if _, got, _ := strings.Cut(strings.TrimSpace(log.String()), `"event":`); got != want+"}" {
			t.Errorf("logged\n%s\nwant\n%s", got, want+"}")
		}
	}
}

func TestLogWritesTheWholeEvent(t *testing.T) {
	var out bytes.Buffer
	publisher := notify.Log(slog.New(slog.NewJSONHandler(&out, nil)))
	event := examples()["overlap"]
	if err := publisher.Publish(t.Context(), event); err != nil {
		t.Fatal(err)
	}
	var record struct {
		Level string
		Event map[string]any
	}
	if err := json.Unmarshal(out.Bytes(), &record); err != nil {
		t.Fatal(err)
	}
	if record.Level != "WARN" {
		t.Errorf("level = %s, want WARN", record.Level)
	}
	_, data := document(t)
	for name := range data {
		if _, ok := record.Event[name]; !ok {
			t.Errorf("the log lacks %s: %s", name, out.String())
		}
	}
	if record.Event["id"] != event.ID || record.Event["key"] != event.Key {
		t.Errorf("id or key differ: %s", out.String())
	}
}

func TestLogTellsWhenItCannot(t *testing.T) {
	event := examples()["lost"]
	deaf := notify.Log(slog.New(slog.NewTextHandler(&bytes.Buffer{}, &slog.HandlerOptions{Level: slog.LevelError})))
	if err := deaf.Publish(t.Context(), event); err == nil {
		t.Error("a logger that drops warnings: no error")
	}
	broken := errors.New("disk full")
	if err := notify.Log(slog.New(failing{slog.DiscardHandler, broken})).Publish(t.Context(), event); !errors.Is(err, broken) {
		t.Errorf("a failing handler: err = %v, want %v", err, broken)
	}
	var out bytes.Buffer
	event.ID = ""
	err := notify.Log(slog.New(slog.NewTextHandler(&out, nil))).Publish(t.Context(), event)
	if !errors.Is(err, notify.ErrInvalidEvent) || !strings.Contains(out.String(), event.Key) {
		t.Errorf("an invalid event: err = %v, log = %q", err, out.String())
	}
}

type failing struct {
	slog.Handler
	err error
}

func (f failing) Enabled(context.Context, slog.Level) bool  { return true }
func (f failing) Handle(context.Context, slog.Record) error { return f.err }

package monitor_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/monitor"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/store"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/words"
	"github.com/belaygo/belay/internal/heartbeat"
	"github.com/belaygo/belay/notify"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestIngest(t *testing.T) {
	st := newStore(t)
	var out bytes.Buffer
	m := newMonitor(t, st, &out)
	ingest(t, m, event("1"))
	ingest(t, m, event("2"))
	ingest(t, m, event("1"))

	want := `2026-05-04T03:02:01.500Z WARNING overlap orders/orders-1 "order:1" `
	lines := strings.SplitAfter(out.String(), "\n")
	if len(lines) != 3 || lines[2] != "" {
		t.Fatalf("wrote %q, want two lines", out.String())
	}
	for _, line := range lines[:2] {
		if !strings.HasPrefix(line, want) || !strings.Contains(line, words.English.Event(event("1"))) {
			t.Errorf("line %q, want %q and the description", line, want)
		}
	}
	if got, err := st.Recent(t.Context(), 10); err != nil || len(got) != 2 {
		t.Errorf("stored %v, %v, want two events", got, err)
	}
	metrics := gather(t, m)
	for name, want := range map[string]float64{
		`belay_monitor_events_total{overlap}`:        2,
		`belay_monitor_events_total{lost}`:           0,
		`belay_monitor_events_total{unknown_commit}`: 0,
		`belay_monitor_events_total{degraded}`:       0,
		`belay_monitor_duplicates_total`:             1,
		`belay_monitor_store_errors_total`:           0,
	} {
		if got, ok := metrics[name]; !ok || got != want {
			t.Errorf("%s = %v (%v), want %v", name, got, ok, want)
		}
	}
}

func TestIngestTogether(t *testing.T) {
	var out bytes.Buffer
	m := newMonitor(t, newStore(t), &out)
	const events, copies = 10, 4
	var wg sync.WaitGroup
	for i := range events * copies {
		wg.Go(func() {
			if err := m.Ingest(t.Context(), event(fmt.Sprint(i%events)), nil, ""); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if len(lines) != events {
		t.Errorf("%d lines, want %d", len(lines), events)
	}
	for _, line := range lines {
		if !strings.HasPrefix(line, "2026-05-04T03:02:01.500Z WARNING ") {
			t.Errorf("line %q is not whole", line)
		}
	}
}

func TestStoreFailure(t *testing.T) {
	st := newStore(t)
	var out bytes.Buffer
	m := newMonitor(t, st, &out)
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	if err := m.Ingest(t.Context(), event("1"), nil, ""); err == nil {
		t.Error("Ingest without a store succeeded")
	}
	if out.Len() > 0 {
		t.Errorf("wrote %q for an event that is not stored", out.String())
	}
	if err := m.Heard(t.Context(), heartbeat.Heartbeat{Service: "orders"}, ""); err == nil {
		t.Error("Heard without a store succeeded")
	}
	metrics := gather(t, m)
	if got := metrics["belay_monitor_store_errors_total"]; got != 1 {
		t.Errorf("store errors = %v, want that of the event: no heartbeat is left to the queue", got)
	}
	if got := metrics["belay_monitor_events_total{overlap}"]; got != 0 {
		t.Errorf("events = %v, want 0", got)
	}
}

func TestInvalidEvent(t *testing.T) {
	var out bytes.Buffer
	m := newMonitor(t, newStore(t), &out)
	ev := event("1")
	ev.Verdict = "made up"
	if err := m.Ingest(t.Context(), ev, nil, ""); !errors.Is(err, notify.ErrInvalidEvent) {
		t.Errorf("Ingest: %v, want %v", err, notify.ErrInvalidEvent)
	}
	if out.Len() > 0 {
		t.Errorf("wrote %q", out.String())
	}
}

// A stop in the middle of an Add does not take the alert away, one before it
// leaves the event to the sender.
func TestStop(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var out bytes.Buffer
	m := newMonitor(t, stoppingStore{stop: cancel}, &out)
	if err := m.Ingest(ctx, event("1"), nil, ""); err != nil || out.Len() == 0 {
		t.Errorf("Ingest: %v, wrote %q, want nil and a line", err, out.String())
	}
	out.Reset()
	if err := m.Ingest(ctx, event("2"), nil, ""); !errors.Is(err, context.Canceled) || out.Len() > 0 {
		t.Errorf("Ingest after the stop: %v, wrote %q, want %v and nothing", err, out.String(), context.Canceled)
	}
}

// stoppingStore is stopped while it adds.
type stoppingStore struct {
	acceptAll
	stop func()
}

func (s stoppingStore) Add(ctx context.Context, _ notify.Event, _ []byte, _ string) (bool, error) {
	s.stop()
	return ctx.Err() == nil, ctx.Err()
}

// An alert that cannot be written must not bring the message back: it would
// come as a duplicate.
func TestAlertNotWritten(t *testing.T) {
	m, err := monitor.New(t.Context(), monitor.Config{Store: newStore(t), Out: failingWriter{}})
	if err != nil {
		t.Fatal(err)
	}
	ingest(t, m, event("1"))
}

func TestNewestEventAfterRestart(t *testing.T) {
	st := newStore(t)
	const name = "belay_monitor_last_event_timestamp_seconds"
	if got := gather(t, newMonitor(t, st, nil))[name]; got != 0 {
		t.Errorf("%s of an empty store = %v, want 0", name, got)
	}
	from := time.Now().Add(-time.Millisecond)
	ingest(t, newMonitor(t, st, nil), event("1"))
	got := gather(t, newMonitor(t, st, nil))[name]
	if at := time.UnixMicro(int64(got * 1e6)); at.Before(from) || at.After(time.Now()) {
		t.Errorf("%s = %v, want about now", name, at)
	}
}

func TestNewRefuses(t *testing.T) {
	if _, err := monitor.New(t.Context(), monitor.Config{}); err == nil || !strings.Contains(err.Error(), "Config.Store") {
		t.Errorf("New without a store: %v, want the field named", err)
	}
}

type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func event(id string) notify.Event {
	return notify.Event{
		ID: id, Service: "orders", Instance: "orders-1", Verdict: notify.VerdictOverlap, Outcome: notify.OutcomeRefused,
		Key: "order:1", CaughtAt: time.Date(2026, 5, 4, 3, 2, 1, 5e8, time.UTC), Count: 1,
	}
}

func newStore(t *testing.T) *store.Store {
	t.Helper()
	st, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "m.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	return st
}

func newMonitor(t *testing.T, st monitor.Store, out *bytes.Buffer) *monitor.Monitor {
	t.Helper()
	cfg := monitor.Config{Store: st}
	if out != nil {
		cfg.Out = out
	}
	m, err := monitor.New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func ingest(t *testing.T, m *monitor.Monitor, ev notify.Event) {
	t.Helper()
	if err := m.Ingest(t.Context(), ev, nil, ""); err != nil {
		t.Fatalf("Ingest: %v", err)
	}
}

// gather returns m's metrics as name{label values}.
func gather(t *testing.T, m *monitor.Monitor) map[string]float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	if err := registry.Register(m); err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := make(map[string]float64)
	for _, f := range families {
		for _, metric := range f.GetMetric() {
			name := f.GetName()
			for _, l := range metric.GetLabel() {
				name += "{" + l.GetValue() + "}"
			}
			values[name] = metric.GetCounter().GetValue() + metric.GetGauge().GetValue()
		}
	}
	return values
}

package web_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/store"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/watch"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/web"
	"github.com/belaygo/belay/notify"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// site is a handler on a store of its own.
type site struct {
	*web.Handler
	store *store.Store
	cfg   web.Config
}

// broker is a queue that is read, or why not.
type broker struct {
	err  error
	dead int
}

func (b broker) Err() error { return b.err }

func (b broker) DeadLetters() (int, bool) { return b.dead, b.err == nil }

var errAway = errors.New("no connection")

// failing is a store that does not answer.
type failing struct{ *store.Store }

func (failing) Ping(context.Context) error { return fmt.Errorf("disk I/O error in /secret/path") }

func newSite(tb testing.TB, change ...func(*web.Config)) *site {
	tb.Helper()
	st, err := store.Open(tb.Context(), filepath.Join(tb.TempDir(), "monitor.db"))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = st.Close() })
	registry := prometheus.NewRegistry()
	counter := prometheus.NewCounter(prometheus.CounterOpts{Name: "test_total", Help: "A test."})
	counter.Inc()
	registry.MustRegister(counter)
	cfg := web.Config{Store: st, Broker: broker{}, Metrics: registry}
	for _, c := range change {
		c(&cfg)
	}
	h, err := web.NewHandler(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	return &site{h, st, cfg}
}

func withWrites(c *web.Config) { c.Writes = true }

func event(id string) notify.Event {
	return notify.Event{
		ID: id, Service: "orders", Instance: "orders-1", Verdict: notify.VerdictOverlap, Outcome: notify.OutcomeRefused,
		Key: "order:1", Table: "orders", CaughtAt: time.Now().Add(-time.Minute).UTC().Truncate(time.Microsecond), Count: 7,
		Place: notify.Place{Node: "127.0.0.1:7001", Slot: 42}, TTL: 10 * time.Second,
	}
}

func (s *site) add(tb testing.TB, ev notify.Event) {
	tb.Helper()
	if _, err := s.store.Add(tb.Context(), ev, nil, ""); err != nil {
		tb.Fatal(err)
	}
}

const incidentID = "0196f9c4-0000-7000-8000-00000000000a"

// anIncident is a failover that goes on, with changes.
func anIncident(change ...func(*incident.Incident)) incident.Incident {
	now := time.Now()
	i := incident.Incident{
		ID: incidentID, Key: "k", Service: "orders", Cause: incident.Failover, Cluster: "main", Shard: "0-5460",
		State: incident.Ongoing, Confidence: incident.High, FirstAt: now.Add(-12 * time.Minute), LastAt: now.Add(-time.Minute),
		SeenAt: now, UpdatedAt: now, OpenedAt: now.Add(-12 * time.Minute), DocLink: incident.DocLink(incident.Failover),
		Evidence: []incident.Evidence{seen(takeover(now.Add(-12*time.Minute)), 1200*time.Millisecond)},
	}
	for _, c := range change {
		c(&i)
	}
	return i
}

// explain puts the newest event into an incident.
func (s *site) explain(tb testing.TB, change ...func(*incident.Incident)) incident.Incident {
	tb.Helper()
	i := anIncident(change...)
	recent, err := s.store.Recent(tb.Context(), 1)
	if err != nil {
		tb.Fatal(err)
	}
	var moves []incident.Move
	if len(recent) > 0 {
		moves = []incident.Move{{Seq: recent[0].Seq, Incident: i.ID}}
	}
	if err := s.store.Apply(tb.Context(), []incident.Incident{i}, moves); err != nil {
		tb.Fatal(err)
	}
	return i
}

func takeover(at time.Time) watch.Entry {
	return watch.Entry{
		At: at, Since: at.Add(-time.Second), Kind: watch.Failover, Cluster: "main", Shard: "0-5460",
		Node: "127.0.0.1:7004", Peer: "127.0.0.1:7001", Numbers: map[string]int64{"new_epoch": 7, "old_epoch": 1},
	}
}

// seen is a row of evidence on an entry.
func seen(e watch.Entry, before time.Duration) incident.Evidence {
	return incident.Evidence{At: e.At, Node: e.Node, Kind: incident.Seen, Entry: &e, For: before}
}

func (s *site) failover(tb testing.TB, at time.Time) {
	tb.Helper()
	if err := s.store.AddEntries(tb.Context(), []watch.Entry{takeover(at)}); err != nil {
		tb.Fatal(err)
	}
}

func (s *site) do(tb testing.TB, method, path, form string, header ...string) *httptest.ResponseRecorder {
	tb.Helper()
	r := httptest.NewRequest(method, "http://127.0.0.1:9440"+path, strings.NewReader(form))
	if form != "" && !strings.HasPrefix(form, "{") {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

func (s *site) get(tb testing.TB, path string, header ...string) *httptest.ResponseRecorder {
	tb.Helper()
	return s.do(tb, http.MethodGet, path, "", header...)
}

// page expects the page.
func (s *site) page(tb testing.TB, path string, header ...string) string {
	tb.Helper()
	w := s.get(tb, path, header...)
	if w.Code != http.StatusOK {
		tb.Errorf("GET %s: %d, want 200: %.300s", path, w.Code, w.Body)
	}
	if got, want := w.Header().Get("Content-Type"), "text/html; charset=utf-8"; got != want {
		tb.Errorf("GET %s: content type %q", path, got)
	}
	return w.Body.String()
}

func (s *site) json(tb testing.TB, path string) map[string]any {
	tb.Helper()
	w := s.get(tb, path)
	var v map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &v); err != nil || w.Code != http.StatusOK {
		tb.Fatalf("GET %s: %d %v %s", path, w.Code, err, w.Body)
	}
	return v
}

func serve(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func mustContain(tb testing.TB, s string, wanted ...string) {
	tb.Helper()
	for _, want := range wanted {
		if !strings.Contains(s, want) {
			tb.Errorf("%q is not in %.3000s", want, s)
		}
	}
}

func mustNotContain(tb testing.TB, s string, unwanted ...string) {
	tb.Helper()
	for _, u := range unwanted {
		if strings.Contains(s, u) {
			tb.Errorf("%q is in %.3000s", u, s)
		}
	}
}

func TestMetrics(t *testing.T) {
	mustContain(t, newSite(t).get(t, "/metrics").Body.String(), "test_total 1")
}

func TestNewHandlerRefuses(t *testing.T) {
	whole := newSite(t).cfg
	for field, remove := range map[string]func(*web.Config){
		"Config.Store":       func(c *web.Config) { c.Store = nil },
		"Config.Broker":      func(c *web.Config) { c.Broker = nil },
		"Config.Metrics":     func(c *web.Config) { c.Metrics = nil },
		"Config.MaxLive":     func(c *web.Config) { c.MaxLive = -1 },
		"Config.ExternalURL": func(c *web.Config) { c.ExternalURL = "http://a b" },
	} {
		cfg := whole
		remove(&cfg)
		if _, err := web.NewHandler(cfg); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("NewHandler without %s: %v", field, err)
		}
	}
}

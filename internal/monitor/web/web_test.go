package web_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/belaygo/belay/internal/monitor/store"
	"github.com/belaygo/belay/internal/monitor/web"
	"github.com/belaygo/belay/notify"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestMetrics(t *testing.T) {
	body := get(t, handler(t, &fakeStore{}, true), "/metrics").Body.String()
	mustContain(t, body, "test_total 1")
}

func TestNewHandlerRefuses(t *testing.T) {
	whole := web.Config{Store: &fakeStore{}, Broker: broker(true), Metrics: prometheus.NewRegistry()}
	for field, remove := range map[string]func(*web.Config){
		"Config.Store":   func(c *web.Config) { c.Store = nil },
		"Config.Broker":  func(c *web.Config) { c.Broker = nil },
		"Config.Metrics": func(c *web.Config) { c.Metrics = nil },
	} {
		cfg := whole
		remove(&cfg)
		if _, err := web.NewHandler(cfg); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("NewHandler without %s: %v", field, err)
		}
	}
}

type fakeStore struct {
	events []store.Received
	counts map[notify.Verdict]store.Count
	err    error
}

func (s *fakeStore) Ping(context.Context) error { return s.err }

func (s *fakeStore) Recent(context.Context, int) ([]store.Received, error) { return s.events, s.err }

func (s *fakeStore) Counts(context.Context) (map[notify.Verdict]store.Count, error) {
	return s.counts, s.err
}

type broker bool

func (b broker) Connected() bool { return bool(b) }

func event() notify.Event {
	return notify.Event{
		ID: "event-1", Service: "orders", Instance: "orders-1", Verdict: notify.Overlap, Outcome: notify.Refused,
		Key: "order:1", CaughtAt: time.Date(2026, 5, 4, 3, 2, 1, 5e8, time.UTC), Count: 7,
	}
}

func handler(t *testing.T, s web.Store, connected bool) http.Handler {
	t.Helper()
	registry := prometheus.NewRegistry()
	counter := prometheus.NewCounter(prometheus.CounterOpts{Name: "test_total", Help: "A test."})
	counter.Inc()
	registry.MustRegister(counter)
	h, err := web.NewHandler(web.Config{Store: s, Broker: broker(connected), Metrics: registry})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func get(t *testing.T, h http.Handler, path string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://127.0.0.1:9440"+path, nil))
	return w
}

func page(t *testing.T, s web.Store, connected bool, code int) string {
	t.Helper()
	res := get(t, handler(t, s, connected), "/")
	if res.Code != code {
		t.Errorf("code %d, want %d", res.Code, code)
	}
	if got, want := res.Header().Get("Content-Type"), "text/html; charset=utf-8"; got != want {
		t.Errorf("content type %q, want %q", got, want)
	}
	return res.Body.String()
}

func mustContain(t *testing.T, s, want string) {
	t.Helper()
	if !strings.Contains(s, want) {
		t.Errorf("%q is not in %q", want, s)
	}
}

func mustNotContain(t *testing.T, s string, unwanted ...string) {
	t.Helper()
	for _, u := range unwanted {
		if strings.Contains(s, u) {
			t.Errorf("%q is in %q", u, s)
		}
	}
}

package web_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/intake"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/web"
)

// An endpoint answers 299 to whatever reaches it.
type endpoint struct{ err error }

func (endpoint) ServeHTTP(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(299) }

func (e endpoint) Err() error { return e.err }

func withEndpoint(c *web.Config) { c.Endpoint = endpoint{} }

func withoutBroker(c *web.Config) { c.Broker, c.Endpoint = nil, endpoint{} }

// TestEventsArePosted: two routes go past the checks for people, and nothing else does.
func TestEventsArePosted(t *testing.T) {
	guarded := newSite(t, withEndpoint, func(c *web.Config) {
		c.Auth, c.ExternalURL = newAuth(t), "https://monitor.example.com/belay"
	})
	for _, tt := range []struct {
		method, host, path string
		want               int
	}{
		{"POST", "localhost", "/api/v1/events", 299},
		{"POST", "guard-monitor.belay.svc:9440", "/api/v1/events", 299},
		{"POST", "monitor.example.com", "/belay/api/v1/events", 299},
		{"GET", "localhost", "/api/v1/ingest", 299},
		{"GET", "guard-monitor.belay.svc:9440", "/api/v1/ingest", 299},
		{"GET", "monitor.example.com", "/belay/api/v1/ingest", 299},
		{"POST", "localhost", "/api/v1/ingest", 401},
		{"GET", "localhost", "/api/v1/ingest/", 401},
		{"GET", "localhost", "/api/v1/events", 401},
		{"GET", "guard-monitor.belay.svc:9440", "/api/v1/events", 421},
		{"PUT", "localhost", "/api/v1/events", 401},
		{"POST", "localhost", "/api/v1/events/", 401},
		{"POST", "localhost", "/api/v1/events/x", 401},
		{"POST", "localhost", "//api/v1/events", 401},
		{"POST", "localhost", "/api/v1/silences", 401},
	} {
		if code := answered(guarded, tt.method, tt.host, tt.path); code != tt.want {
			t.Errorf("%s %s%s: %d, want %d", tt.method, tt.host, tt.path, code, tt.want)
		}
	}
	for method, path := range map[string]string{"POST": "/api/v1/events", "GET": "/api/v1/ingest"} {
		if code := answered(newSite(t), method, "localhost", path); code != 404 {
			t.Errorf("%s %s without an endpoint: %d, want 404", method, path, code)
		}
	}
}

func answered(h http.Handler, method, host, path string) int {
	r := httptest.NewRequest(method, "http://localhost/", nil)
	r.Host, r.URL.Path = host, path
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code
}

// TestWithoutABroker: no page and no answer speaks of a broker that there is not.
func TestWithoutABroker(t *testing.T) {
	s := newSite(t, withoutBroker)
	page := s.get(t, "/").Body.String()
	mustContain(t, page, "none: services post their events")
	for _, text := range []string{"not connected", "The broker does not answer", "Dead letters"} {
		if strings.Contains(page, text) {
			t.Errorf("the overview has %q", text)
		}
	}
	health := s.get(t, "/healthz")
	mustContain(t, health.Body.String(), `"broker":"none"`)
	overview := s.get(t, "/api/v1/overview").Body.String()
	mustContain(t, overview, `"store_takes_events":true`)
	if health.Code != 200 || strings.Contains(overview, "broker_connected") || strings.Contains(overview, "dead_letters") {
		t.Errorf("health %d, overview %s", health.Code, overview)
	}
}

// TestEndpointWhoseStoreFails: it is unwell, with a broker and without.
func TestEndpointWhoseStoreFails(t *testing.T) {
	for _, with := range []func(*web.Config){withEndpoint, withoutBroker} {
		s := newSite(t, with, func(c *web.Config) {
			c.Endpoint = endpoint{fmt.Errorf("%w: %w", intake.ErrHandler, errors.New("disk"))}
		})
		health := s.get(t, "/healthz")
		mustContain(t, health.Body.String(), `"store":"not taking events"`)
		mustContain(t, s.get(t, "/").Body.String(), "The store takes no events")
		if health.Code != 503 {
			t.Errorf("health: %d", health.Code)
		}
	}
}

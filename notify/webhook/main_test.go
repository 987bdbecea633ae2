package webhook_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/belaygo/belay/notify"
	"github.com/belaygo/belay/notify/webhook"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const token = "a-token-of-this-test"

func event(n int) notify.Event {
	return notify.Event{
		ID:       fmt.Sprintf("0199a1b2-0000-7000-8000-%012d", n),
		Service:  "orders",
		Verdict:  notify.VerdictOverlap,
		Outcome:  notify.OutcomeRefused,
		Key:      fmt.Sprintf("order:中国:%d", n),
		CaughtAt: time.Date(2026, 11, 21, 9, 30, 7, 0, time.UTC),
		Count:    1,
	}
}

// A monitor takes events, or answers as it is told.
type monitor struct {
	*httptest.Server

	mu     sync.Mutex
	answer http.HandlerFunc // nil: as guard-monitor does
	bodies [][]byte
	header http.Header // of the last request
}

func newMonitor(t *testing.T, start func(http.Handler) *httptest.Server) *monitor {
	t.Helper()
	m := new(monitor)
	m.Server = start(m)
	t.Cleanup(m.Close)
	return m
}

func (m *monitor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	m.mu.Lock()
	m.bodies, m.header = append(m.bodies, body), r.Header
	answer := m.answer
	m.mu.Unlock()
	if answer != nil {
		answer(w, r)
		return
	}
	if r.Method != http.MethodPost || r.URL.Path != "/api/v1/events" || r.Header.Get("Authorization") != "Bearer "+token {
		w.WriteHeader(http.StatusTeapot)
		return
	}
	var ev struct{ ID string }
	_ = json.Unmarshal(body, &ev)
	w.WriteHeader(http.StatusAccepted)
	fmt.Fprintf(w, `{"taken":%q}`, ev.ID)
}

func (m *monitor) answers(f http.HandlerFunc) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.answer = f
}

// says answers with a status and a body.
func says(code int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	}
}

func (m *monitor) requests() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.bodies)
}

func newPublisher(t *testing.T, address string, cfg webhook.Config) webhook.Publisher {
	t.Helper()
	if cfg.Token == "" {
		cfg.Token = token
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	p, err := webhook.New(address, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return p
}

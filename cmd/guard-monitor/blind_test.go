package main_test

import (
	"database/sql"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/belaygo/belay/internal/teststack"
)

// mailbox is a webhook that keeps the alerts that it gets.
type mailbox struct {
	*httptest.Server
	mu   sync.Mutex
	last map[string]string // status by part of guard-monitor, or else by name of the alert
}

func newMailbox(t *testing.T) *mailbox {
	t.Helper()
	m := &mailbox{last: make(map[string]string)}
	m.Server = httptest.NewServer(m)
	t.Cleanup(m.Close)
	return m
}

func (m *mailbox) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var message struct {
		Alerts []struct {
			Status string            `json:"status"`
			Labels map[string]string `json:"labels"`
		} `json:"alerts"`
	}
	if err := json.NewDecoder(r.Body).Decode(&message); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, a := range message.Alerts {
		name := a.Labels["alertname"]
		if part := a.Labels["part"]; part != "" {
			name = part
		}
		m.last[name] = a.Status
	}
}

func (m *mailbox) status(name string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.last[name]
}

// A monitor that receives nothing, and sees nothing of Redis, says so, and says when it is
// over. Its watchdog waits for both.
func TestBlind(t *testing.T) {
	t.Parallel()
	broker, err := url.Parse(teststack.AMQP(t))
	check(t, err)
	way, box := newProxy(t, broker.Host), newMailbox(t)
	broker.Host = way.addr
	p := start(t, []string{"BELAY_AMQP_URL=" + broker.String()}, "-listen", "127.0.0.1:0", "-config", settings(t, `
incidents: {blind_after: 1s}
redis: [{name: main, nodes: 127.0.0.1:1}]
receivers: [{name: night, type: webhook, url: "`+box.URL+`", watchdog_interval: 1m}]
`))
	p.eventually("the alerts", func() bool { return box.status("broker") == "firing" && box.status("redis main") == "firing" })
	way.open()
	p.eventually("its end", func() bool { return box.status("broker") == "resolved" })
	if box.status("redis main") != "firing" || box.status("store") != "" || box.status("BelayWatchdog") != "" {
		t.Errorf("sent %v", box.last)
	}
	p.stop(syscall.SIGTERM)
}

// A monitor that cannot store says so, though it cannot note that.
func TestBlindStore(t *testing.T) {
	t.Parallel()
	path, box := filepath.Join(t.TempDir(), "monitor.db"), newMailbox(t)
	p := start(t, nil, "-db", path, "-listen", "127.0.0.1:0", "-config", settings(t, ingestSettings+`
incidents: {blind_after: 1s}
receivers: [{name: night, type: webhook, url: "`+box.URL+`", watchdog_interval: 1m}]
`))
	p.eventually("the watchdog", func() bool { return box.status("BelayWatchdog") == "firing" })
	db, err := sql.Open("sqlite", path)
	check(t, err)
	defer db.Close()
	db.SetMaxOpenConns(1)
	_, err = db.ExecContext(t.Context(), "BEGIN IMMEDIATE") // nobody else can write
	check(t, err)
	w := p.publisher(ingestToken)
	if err := w.Publish(t.Context(), event("late")); err == nil || !strings.Contains(err.Error(), "503") {
		t.Errorf("Publish: %v", err)
	}
	p.eventually("the alert", func() bool { return box.status("store") == "firing" })
	_, err = db.ExecContext(t.Context(), "ROLLBACK")
	check(t, err)
	check(t, w.Publish(t.Context(), event("late")))
	p.eventually("its end", func() bool { return box.status("store") == "resolved" })
	p.stop(syscall.SIGTERM)
}

package main_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/store"
	"github.com/belaygo/belay/internal/heartbeat"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/testmetric"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/notify/outbox"
	"github.com/belaygo/belay/notify/webhook"
)

const ingestToken = "a-token-of-the-orders"

const ingestSettings = `
ingest:
  - name: shop
    token: ` + ingestToken + `
    services: [orders]
`

// startIngest starts a monitor without a broker on the database.
func startIngest(t *testing.T, db string) *process {
	t.Helper()
	p := start(t, nil, "serve", "-config", settings(t, ingestSettings), "-db", db, "-listen", "127.0.0.1:0")
	p.url()
	return p
}

func (p *process) publisher(token string) webhook.Publisher {
	p.t.Helper()
	w, err := webhook.New(p.url(), webhook.Config{Token: token, Timeout: limit, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		if err := w.Close(context.Background()); err != nil {
			p.t.Error(err)
		}
	})
	return w
}

// TestWithoutABroker: events and heartbeats are posted, and everything that a monitor says of
// itself says that there is no broker.
func TestWithoutABroker(t *testing.T) {
	t.Parallel()
	p := startIngest(t, filepath.Join(t.TempDir(), "monitor.db"))
	if code, body := p.get("/healthz"); code != 200 || !strings.Contains(body, `"broker":"none"`) {
		t.Errorf("health: %d %s", code, body)
	}
	w := p.publisher(ingestToken)
	for range 2 {
		if err := w.Publish(t.Context(), event("posted")); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.PublishHeartbeat(t.Context(), heartbeat.Heartbeat{ID: "beat", Service: "orders", At: time.Now(), Interval: time.Minute}); err != nil {
		t.Error(err)
	}
	if err := p.publisher("a-token-of-nobody").Publish(t.Context(), event("other")); err == nil || !strings.Contains(err.Error(), "401") {
		t.Errorf("a wrong token: %v", err)
	}
	for result, n := range map[string]int{"stored": 1, "repeated": 1, "heartbeat": 1, "unauthorized": 1} {
		if !p.metric(fmt.Sprintf(`belay_ingest_requests_total{result=%q} %d`, result, n)) {
			t.Errorf("/metrics has not %d %s", n, result)
		}
	}
	if _, body := p.get("/metrics"); strings.Contains(body, "belay_consumer") {
		t.Error("/metrics has those of a broker")
	}
	checkAlert(t, p, event("posted"))
	_, page := p.get("/")
	if !strings.Contains(page, "none: services post their events") || strings.Contains(page, "not connected") || strings.Contains(page, "The broker does not answer") {
		t.Errorf("the overview speaks of a broker:\n%s", page)
	}
	if _, body := p.get("/api/v1/overview"); strings.Contains(body, "broker_connected") || !strings.Contains(body, `"store_takes_events":true`) {
		t.Errorf("the API's overview: %s", body)
	}
	if strings.Contains(p.stderr.String(), ingestToken) {
		t.Error("the token is logged")
	}
	p.stop(syscall.SIGTERM)
}

// TestPostedEventSurvivesAKill: the answer comes after the event is on disk.
func TestPostedEventSurvivesAKill(t *testing.T) {
	t.Parallel()
	db := filepath.Join(t.TempDir(), "monitor.db")
	for n := range 3 {
		p := startIngest(t, db)
		if err := p.publisher(ingestToken).Publish(t.Context(), event(fmt.Sprint("kill-", n))); err != nil {
			t.Fatal(err)
		}
		if err := p.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		<-p.exited
	}
	p := startIngest(t, db)
	for n := range 3 {
		if code, body := p.get(fmt.Sprint("/api/v1/events/kill-", n)); code != 200 {
			t.Errorf("the event of monitor %d is gone: %d %s", n, code, body)
		}
	}
}

// TestPostedEventOfAFullStore: while the database takes nothing, senders are asked to wait, and
// the monitor says that it is unwell.
func TestPostedEventOfAFullStore(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "monitor.db")
	p := startIngest(t, path)
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(10000)") // the monitor may be writing
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	if _, err := db.ExecContext(t.Context(), "BEGIN IMMEDIATE"); err != nil { // nobody else can write
		t.Fatal(err)
	}
	w := p.publisher(ingestToken)
	err = w.Publish(t.Context(), event("late"))
	var busy interface{ RetryAfter() time.Duration }
	if !errors.As(err, &busy) || busy.RetryAfter() != 5*time.Second || !strings.Contains(err.Error(), "503") {
		t.Errorf("err = %v, want one that says 503", err)
	}
	if code, body := p.get("/healthz"); code != 503 || !strings.Contains(body, `"store":"not taking events"`) {
		t.Errorf("health: %d %s", code, body)
	}
	if _, err := db.ExecContext(t.Context(), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	if err := w.Publish(t.Context(), event("late")); err != nil {
		t.Error(err)
	}
	if code, body := p.get("/healthz"); code != 200 {
		t.Errorf("health afterwards: %d %s", code, body)
	}
	checkAlert(t, p, event("late"))
}

// TestLimitedSenderLosesNothing: a service that posts more than it may is asked to wait. Its
// events stay in its outbox, and all arrive in the end; another service does not notice.
func TestLimitedSenderLosesNothing(t *testing.T) {
	t.Parallel()
	const events = 12
	text := strings.Replace(ingestSettings, "services:", "events_per_second: 4\n    burst: 2\n    services:", 1) +
		"  - name: pay\n    token: a-token-of-the-payments\n    services: [payments]\n"
	p := start(t, nil, "serve", "-config", settings(t, text), "-db", filepath.Join(t.TempDir(), "monitor.db"), "-listen", "127.0.0.1:0")
	db := testdb.OpenSQLite(t, filepath.Join(t.TempDir(), "outbox.db"))
	if err := outbox.Migrate(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	box, err := outbox.New(db, outbox.Config{Service: "orders", Relay: p.publisher(ingestToken), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	for n := range events {
		if err := box.Publish(t.Context(), event(fmt.Sprint("limited-", n))); err != nil {
			t.Fatal(err)
		}
	}
	testwait.Until(t, "the sender is limited", func() bool { return !p.metric(`belay_ingest_limited_total{sender="shop"} 0`) })
	other := event("payment")
	other.Service = "payments"
	if err := p.publisher("a-token-of-the-payments").Publish(t.Context(), other); err != nil {
		t.Error(err)
	}
	testwait.Until(t, "all events are stored", func() bool {
		return p.metric(fmt.Sprintf(`belay_ingest_requests_total{result="stored"} %d`, events+1))
	})
	if n := testmetric.Sum(t, box, "belay_outbox_refused_total"); n != 0 {
		t.Errorf("%v events count as refused", n)
	}
	if n := testmetric.Sum(t, box, "belay_outbox_unreadable_total"); n != 0 {
		t.Errorf("%v events count as unreadable", n)
	}
	for _, result := range []string{"busy", "rejected", "repeated", "unauthorized"} {
		if !p.metric(fmt.Sprintf(`belay_ingest_requests_total{result=%q} 0`, result)) {
			t.Errorf("/metrics has requests that are %s", result)
		}
	}
	if !p.metric(`belay_ingest_limited_total{sender="pay"} 0`) {
		t.Error("the other service was limited")
	}
	if err := box.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestInventedServicesAreRefused: a sender that has made too many services known gets a 403 for
// the next one, until somebody forgets some. Its known services are taken.
func TestInventedServicesAreRefused(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "monitor.db")
	text := strings.Replace(ingestSettings, "[orders]", "['*']", 1)
	p := start(t, nil, "serve", "-config", settings(t, text), "-db", path, "-listen", "127.0.0.1:0")
	p.url()
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(5000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	const numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1) "
	for _, insert := range []string{
		"INSERT INTO heartbeats (service, instance, at, every, received_at) SELECT 'job-' || i, 'a', ?2, 1000000, ?2 FROM n", // or a purge forgets them
		"INSERT INTO services SELECT 'job-' || i, 'shop', ?2 FROM n",
	} {
		if _, err = db.ExecContext(t.Context(), numbers+insert, store.MaxServices, time.Now().UnixMicro()); err != nil {
			t.Fatal(err)
		}
	}
	w := p.publisher(ingestToken)
	known, ghost := event("known"), event("ghost")
	known.Service, ghost.Service = "job-7", "ghost"
	if err := w.Publish(t.Context(), known); err != nil {
		t.Errorf("a known service: %v", err)
	}
	if err := w.Publish(t.Context(), ghost); err == nil || !strings.Contains(err.Error(), "403") || !strings.Contains(err.Error(), "too many services") {
		t.Errorf("one service more: %v, want a 403 that says why", err)
	}
	if !p.metric("belay_monitor_store_errors_total 0") {
		t.Error("it counts as a failure of the store")
	}
	f := start(t, nil, "forget", "-db", path, "job-1*")
	if code := f.wait(); code != 0 || !strings.Contains(f.stdout.String(), `forgot "job-199"`) || strings.Contains(f.stdout.String(), `"job-2"`) {
		t.Errorf("forget: exit code %d", code)
	}
	if err := w.Publish(t.Context(), ghost); err != nil {
		t.Errorf("after forget: %v", err)
	}
}

// TestDoctorAsksTheMonitor: a service learns from Doctor whether its events would be taken, and
// the monitor has neither an event nor a heartbeat of it.
func TestDoctorAsksTheMonitor(t *testing.T) {
	t.Parallel()
	p := startIngest(t, filepath.Join(t.TempDir(), "monitor.db"))
	for _, c := range []struct{ service, address, token, want string }{
		{"orders", p.url(), ingestToken, "[]"},
		{"orders", p.url(), "a-token-of-nobody", "error monitor-token: "},
		{"payments", p.url(), ingestToken, "error monitor-token: "},
		{"orders", p.url() + "/elsewhere", ingestToken, "error monitor-server: "},
		{"orders", "http://127.0.0.1:1", ingestToken, "error monitor-server: "},
	} {
		w, err := webhook.New(c.address, webhook.Config{Token: c.token})
		if err != nil {
			t.Fatal(err)
		}
		found := fmt.Sprint(w.Diagnose(t.Context(), c.service))
		if !strings.HasPrefix(strings.TrimPrefix(found, "["), strings.TrimPrefix(c.want, "[")) || strings.Contains(found, c.token) {
			t.Errorf("%s at %s: found %s, want %s", c.service, c.address, found, c.want)
		}
		if err := w.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	for _, list := range []string{"events", "services", "incidents?show=all"} {
		if _, body := p.get("/api/v1/" + list); !strings.Contains(body, `"items":[]`) {
			t.Errorf("people see %s", body)
		}
	}
	if log := p.stderr.String(); !strings.Contains(log, "claimed_service=orders") || strings.Contains(log, "a-token-of-nobody") {
		t.Errorf("the log names no service, or the token: %s", log)
	}
}

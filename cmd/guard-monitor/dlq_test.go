package main_test

import (
	"database/sql"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/store"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
)

// Events of a sender with too many services are dead letters. dlq says why and replays no more
// of them than are taken, and none is lost.
func TestReplayOfTooManyServices(t *testing.T) {
	broker := teststack.AMQP(t)
	path := filepath.Join(t.TempDir(), "monitor.db")
	p := start(t, nil, "-amqp-url", broker, "-db", path, "-listen", "127.0.0.1:0")
	p.eventually("healthy", p.healthy)
	publish(t, broker, event("first"))
	p.eventually("the first is stored", func() bool { return p.metric(`belay_monitor_events_total{verdict="overlap"} 1`) })
	fillServices(t, path)
	for _, service := range []string{"new-1", "new-2"} {
		ev := event(service)
		ev.Service = service
		publish(t, broker, ev)
	}
	p.eventually("both are refused", func() bool { return p.metric(`belay_consumer_dead_lettered_total{name="monitor"} 2`) })

	dlq := func(command string, code int, args ...string) *process {
		t.Helper()
		c := start(t, nil, append([]string{"dlq", command, "-amqp-url", broker, "-db", path}, args...)...)
		if got := c.wait(); got != code {
			t.Errorf("dlq %s: code %d, want %d: %s", command, got, code, c.stderr)
		}
		return c
	}
	list := func(of string) string {
		t.Helper()
		var out string
		testwait.Until(t, "the queue has "+of, func() bool {
			out = dlq("list", 0).stdout.String()
			return strings.HasSuffix(out, of+" dead letters\n")
		})
		return out
	}
	const why = "too many services known; guard-monitor forget makes room"
	out := list("2 of 2")
	if strings.Count(out, "refused event overlap") != 2 {
		t.Errorf("list: %q", out)
	}
	id, _, _ := strings.Cut(out, " ")
	if show := dlq("show", 0, id); !strings.Contains(show.stdout.String(), why) {
		t.Errorf("show: %q", show.stdout)
	}
	replay := func(code int, want string) {
		t.Helper()
		r := dlq("replay", code, "all")
		if r.stdout.String() != want+" dead letters replayed\n" || code == 1 && !strings.Contains(r.stderr.String(), why) {
			t.Errorf("replay: %q, %q", r.stdout, r.stderr)
		}
	}
	replay(1, "0")
	list("2 of 2")

	forget := start(t, nil, "forget", "-db", path, "job-1")
	if code := forget.wait(); code != 0 {
		t.Errorf("forget: code %d, %s", code, forget.stderr)
	}
	replay(1, "1")
	p.eventually("one is stored", func() bool { return p.metric(`belay_monitor_events_total{verdict="overlap"} 2`) })
	list("1 of 1")
	forget = start(t, nil, "forget", "-db", path, "job-2")
	if code := forget.wait(); code != 0 {
		t.Errorf("forget: code %d, %s", code, forget.stderr)
	}
	replay(0, "1")
	p.eventually("both are stored", func() bool { return p.metric(`belay_monitor_events_total{verdict="overlap"} 3`) })
	list("0 of 0")
	p.stop(syscall.SIGTERM)
}

// fillServices makes as many services known as the sender of the only one may.
func fillServices(t *testing.T, path string) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(5000)")
	check(t, err)
	defer db.Close()
	_, err = db.ExecContext(t.Context(), `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
		INSERT INTO services SELECT 'job-' || i, (SELECT sender FROM services), 0 FROM n`, store.MaxServices-1)
	check(t, err)
}

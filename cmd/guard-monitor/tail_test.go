package main_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/store"
	"github.com/belaygo/belay/notify"
)

// forget ends what is known of a service, and leaves an audit line.
func TestForget(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "monitor.db")
	st, err := store.Open(t.Context(), file)
	check(t, err)
	defer st.Close()
	check(t, st.AddHeartbeat(t.Context(), incident.Heartbeat{
		Service: "old\x1b[2J", Instance: "1", At: time.Now(), ReceivedAt: time.Now(), Every: 10 * time.Second,
	}))
	p := start(t, nil, "forget", "-db", file, "old\x1b[2J")
	if code := p.wait(); code != 0 || p.stdout.String() != "forgot \"old\\x1b[2J\"\n" {
		t.Errorf("code %d, %q, %q", code, p.stdout, p.stderr)
	}
	beats, err := st.Heartbeats(t.Context())
	check(t, err)
	lines, err := st.AuditLines(t.Context(), store.Page{Limit: 10})
	check(t, err)
	if len(beats) != 0 || len(lines) != 1 || lines[0].Action != "forget service" || lines[0].Subject != "old\x1b[2J" || lines[0].Remote != "command line" {
		t.Errorf("heartbeats %v, audit lines %+v", beats, lines)
	}
	p = start(t, nil, "forget", "-db", file, "old")
	if code := p.wait(); code != 1 || !strings.Contains(p.stderr.String(), `no known service matches "old"`) {
		t.Errorf("an unknown service: code %d, %q", code, p.stderr)
	}
}

// What has ended is told once, however often is looked after it.
func TestTailTellsTheEndOnce(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "monitor.db")
	st, err := store.Open(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	p := start(t, nil, "tail", "-db", file)
	happen := func(n int) {
		t.Helper()
		ev := notify.Event{
			ID: fmt.Sprintf("e-%d", n), Service: "orders", Verdict: notify.VerdictOverlap, Outcome: notify.OutcomeRefused,
			Key: fmt.Sprintf("order:%d", n), CaughtAt: time.Now(), Count: 1,
		}
		if _, err := st.Add(t.Context(), ev, nil, ""); err != nil {
			t.Fatal(err)
		}
		p.eventually("an event is printed", func() bool { return strings.Contains(p.stdout.String(), ev.Key) })
	}
	happen(1)
	now := time.Now()
	err = st.Apply(t.Context(), []incident.Incident{{
		ID: "i-1", Key: "k", Service: "orders", Cause: incident.Failover, State: incident.Resolved, Confidence: incident.High,
		FirstAt: now, LastAt: now, SeenAt: now, UpdatedAt: now, OpenedAt: now, ResolvedAt: now,
	}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	told := func() int { return strings.Count(p.stdout.String(), "incident orders failover resolved") }
	p.eventually("the end is printed", func() bool { return told() > 0 })
	happen(2)
	happen(3)
	happen(4)
	if n := told(); n != 1 {
		t.Errorf("printed %d times, want once", n)
	}
	p.stop(syscall.SIGTERM)
}

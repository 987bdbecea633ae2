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
		if _, err := st.Add(t.Context(), ev, nil); err != nil {
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

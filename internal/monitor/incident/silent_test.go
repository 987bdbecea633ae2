package incident_test

import (
	"testing"
	"time"

	"github.com/belaygo/belay/internal/monitor/incident"
)

func TestSilentService(t *testing.T) {
	b := newBench(t)
	b.beat("orders")
	b.round(0)
	b.round(25 * time.Second)
	b.incidents(0)
	b.round(10 * time.Second)
	i := b.incidents(1)[0]
	if i.Cause != incident.HeartbeatSilent || i.Service != "orders" || i.Severity() != "critical" || len(i.Evidence) != 2 {
		t.Errorf("incident %+v", i)
	}
	b.round(time.Hour)
	wantState(t, b.incidents(1)[0], incident.New) // quiet is what it is about
	b.beat("orders")
	b.round(time.Second)
	wantState(t, b.incidents(1)[0], incident.Resolved)
	for range 4 {
		b.round(20 * time.Second)
	}
	wantState(t, b.incidents(1)[0], incident.Regressed)
	b.round(20 * time.Second)
	wantState(t, b.incidents(1)[0], incident.Regressed)
	if err := b.store.ForgetService(t.Context(), "orders"); err != nil {
		t.Fatal(err)
	}
	b.round(time.Second)
	wantState(t, b.incidents(1)[0], incident.Resolved)
}

// TestSilenceOfTheBroker: when nobody can be heard, nobody is silent.
func TestSilenceOfTheBroker(t *testing.T) {
	b := newBench(t)
	b.beat("orders")
	b.round(0)
	b.listening = false
	b.round(time.Hour)
	b.listening = true
	b.round(time.Second)
	b.round(20 * time.Second)
	b.incidents(0)
	b.round(20 * time.Second)
	b.incidents(1)
}

// A monitor that stood still, as a suspended machine does, has heard nobody: it
// is not the services that were silent.
func TestSilenceWhileTheMonitorStoodStill(t *testing.T) {
	b := newBench(t)
	b.beat("orders")
	b.round(0)
	b.round(time.Hour)
	b.incidents(0)
	b.round(20 * time.Second)
	b.incidents(0)
	b.round(20 * time.Second)
	b.incidents(1)
}

package incident_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/store"
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
	b.forget("orders")
	b.round(time.Second)
	wantState(t, b.incidents(1)[0], incident.Resolved)
}

// TestLimitedServiceIsNotSilent: a service whose heartbeats are rejected for a limit lives.
// That says nothing about another.
func TestLimitedServiceIsNotSilent(t *testing.T) {
	b := newBench(t)
	b.beat("orders")
	b.beat("payments")
	b.round(0)
	for range 5 {
		b.rejected = map[string]time.Time{"orders": b.now}
		b.round(20 * time.Second)
	}
	if i := b.incidents(1)[0]; i.Service != "payments" {
		t.Errorf("incident of %s", i.Service)
	}
	b.round(20 * time.Second)
	for _, i := range b.incidents(2) {
		if from := i.Evidence[1].From; i.Service == "orders" && !from.Equal(b.rejected["orders"].UTC()) {
			t.Errorf("nothing came since %v, want %v, when a heartbeat was rejected last", from, b.rejected["orders"])
		}
	}
}

// Names come from whoever may publish. Many of them take no service out of
// service.
func TestSilenceAmongManyNames(t *testing.T) {
	b := newBench(t)
	b.beat("orders")
	b.round(0)
	b.round(20 * time.Second)
	b.round(20 * time.Second)
	b.incidents(1)
	for i := range 100 {
		b.beat(fmt.Sprintf("junk-%d", i))
	}
	b.round(time.Second)
	wantState(t, b.incidents(1)[0], incident.New)

	// Nor do they keep one that is out of service in it.
	b.tracker = b.track(crowd{b.store})
	b.forget("orders")
	b.round(time.Second)
	for _, i := range b.incidents(1) {
		wantState(t, i, incident.Resolved)
	}
}

// crowd is a store with heartbeats of many more services.
type crowd struct{ *store.Store }

func (c crowd) Heartbeats(ctx context.Context) ([]incident.Heartbeat, error) {
	list, err := c.Store.Heartbeats(ctx)
	for n := range 10_000 {
		list = append(list, incident.Heartbeat{Service: fmt.Sprint("other-", n), ReceivedAt: time.Now().Add(time.Hour), Every: 100 * time.Hour})
	}
	return list, err
}

// TestShortSilence: rounds that are a moment late are no standstill, however short the silence is
// that makes an incident. What is over ends, and who is silent is noticed.
func TestShortSilence(t *testing.T) {
	b := newBench(t)
	b.tracker = incident.NewTracker(incident.Config{Store: b.store, Locator: b, Settle: -1, SilentAfter: time.Second})
	b.beat("orders")
	b.send("k", nil)
	for range 900 {
		b.round(time.Second + time.Millisecond)
	}
	for _, i := range b.incidents(2) {
		want := incident.Resolved
		if i.Cause == incident.HeartbeatSilent {
			want = incident.New
		}
		wantState(t, i, want)
	}
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

// A clock that is set back neither hides a silence nor keeps one from ending.
func TestSilenceAfterTheClockWasSetBack(t *testing.T) {
	b := newBench(t)
	b.beat("orders")
	b.beat("stock")
	b.round(0)
	b.round(-time.Hour)
	for range 3 {
		b.beat("stock")
		b.round(20 * time.Second)
	}
	i := b.incidents(1)[0]
	if i.Service != "orders" || i.State != incident.New {
		t.Errorf("incident %+v", i)
	}
	b.round(-time.Hour)
	b.beat("stock")
	b.round(20 * time.Second)
	b.beat("orders")
	b.round(time.Second)
	wantState(t, b.incidents(1)[0], incident.Resolved)
}

package incident_test

import (
	"testing"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
	"github.com/belaygo/belay/notify"
)

// undecided changes an event to that of an undecided request.
func undecided(id string) func(*notify.Event) {
	return func(ev *notify.Event) {
		*ev = notify.Event{
			ID: ev.ID, Service: ev.Service, Instance: ev.Instance, Key: ev.Key, CaughtAt: ev.CaughtAt, Count: 1,
			Verdict: notify.VerdictUndecided, Outcome: notify.OutcomeUnknown,
			Call: &notify.UndecidedCall{ID: id, Operation: "pay", Since: ev.CaughtAt, Until: ev.CaughtAt, Tries: 2},
		}
	}
}

// Undecided requests of a service are one incident, which is critical, has a row for each, and ends with
// the heartbeat that counts none. Messages that wait do not keep it open.
func TestUndecidedCalls(t *testing.T) {
	b := newBench(t)
	b.send("a", undecided("id-1"))
	b.send("b", undecided("id-2"))
	b.round(0)
	i := b.incidents(1)[0]
	if i.Cause != incident.CallUndecided || len(i.Evidence) != 2 || i.Severity() != "critical" || i.Confidence != incident.High || i.Effect.Unknown+i.Effect.Failures != 0 {
		t.Errorf("the incident is %+v", i)
	}
	if r := i.Evidence[1].Report; r == nil || r.Call == nil || r.Call.ID != "id-2" || r.Call.Operation != "pay" || r.Call.Tries != 2 {
		t.Errorf("the evidence is %+v", i.Evidence)
	}
	goesOn := func(d time.Duration, left int) {
		t.Helper()
		for range d / (10 * time.Second) {
			h := incident.Heartbeat{
				Service: "orders", Instance: "1", At: b.now, ReceivedAt: b.now, Every: 10 * time.Second,
				Messages: incident.Messages{Table: "shop.belay_message", Waiting: 1, Dead: 1, Undecided: 1},
				Calls:    incident.Calls{Table: "shop.belay_pending", Pending: 3, Undecided: left},
			}
			if err := b.store.AddHeartbeat(t.Context(), h); err != nil {
				t.Fatal(err)
			}
			b.round(10 * time.Second)
		}
	}
	goesOn(time.Hour, 1)
	wantState(t, b.incidents(1)[0], incident.New)
	goesOn(30*time.Second, 0)
	wantState(t, b.incidents(1)[0], incident.Resolved)
}

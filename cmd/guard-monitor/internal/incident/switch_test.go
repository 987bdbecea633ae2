package incident_test

import (
	"strings"
	"testing"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/words"
	"github.com/belaygo/belay/notify"
)

// there is the record of a switch.
var there = incident.Record{Epoch: 2, From: "redis", To: "sql", By: "alice", Left: 40 * time.Second}

// report stores what an instance of orders knows now of the record.
func (b *bench) report(r incident.Record) {
	b.t.Helper()
	h := incident.Heartbeat{Service: "orders", Instance: "orders-1", At: b.now, Every: time.Minute, ReceivedAt: b.now, Record: r}
	if err := b.store.AddHeartbeat(b.t.Context(), h); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) settle() {
	b.t.Helper()
	r := there
	r.Settled, r.Left = true, 0
	b.report(r)
}

// moved are the rows that say that locks moved.
func moved(i incident.Incident) (rows []incident.Evidence) {
	for _, e := range i.Evidence {
		if e.Kind == incident.Switched {
			rows = append(rows, e)
		}
	}
	return rows
}

// TestSwitchIsNoIncident: nobody is alerted of one.
func TestSwitchIsNoIncident(t *testing.T) {
	b := newBench(t)
	b.report(there)
	b.round(time.Second)
	b.settle()
	b.round(time.Second)
	b.incidents(0)
}

// TestIncidentDuringASwitch: it has one row that says so, whatever else is found.
func TestIncidentDuringASwitch(t *testing.T) {
	b := newBench(t)
	began := b.now.UTC().Truncate(time.Microsecond)
	b.report(there)
	b.now = b.now.Add(20 * time.Second)
	b.send("k", nil)
	b.round(0)
	i := b.incidents(1)[0]
	rows := moved(i)
	if len(rows) != 1 || *rows[0].Switch != (incident.Between{Epoch: 2, From: "redis", To: "sql", By: "alice"}) ||
		!rows[0].From.Equal(began) || !rows[0].To.IsZero() || i.Evidence[0].Kind != incident.Reported {
		t.Fatalf("evidence %+v", i.Evidence)
	}
	b.now = b.now.Add(20 * time.Second)
	over := b.now.UTC().Truncate(time.Microsecond)
	b.settle()
	b.round(0)
	if rows = moved(b.incidents(1)[0]); len(rows) != 1 || !rows[0].To.Equal(over) {
		t.Fatalf("after the switch: %+v", rows)
	}
	if says := words.English.Evidence(rows[0]); !strings.Contains(says, `the locks of "orders" moved from the engine redis to sql`) || !strings.Contains(says, `made by "alice"`) {
		t.Errorf("it says %q", says)
	}

	b.saw(failover(-20)) // the cause is found later
	b.round(6 * time.Second)
	i = b.incidents(1)[0]
	if i.Cause != incident.Failover || len(moved(i)) != 1 || len(i.Evidence) < 3 {
		t.Errorf("cause %s, evidence %+v", i.Cause, i.Evidence)
	}
	b.round(6 * time.Second)
	if again := b.incidents(1)[0]; !again.UpdatedAt.Equal(i.UpdatedAt) {
		t.Error("it is written again though nothing is new")
	}
}

// TestOutageThatASwitchEnds: Redis died before, and the locks were back when they had moved.
func TestOutageThatASwitchEnds(t *testing.T) {
	b := newBench(t)
	degraded := func(o notify.Outcome) {
		b.send("k", func(ev *notify.Event) { ev.Verdict, ev.Outcome = notify.VerdictDegraded, o })
	}
	degraded(notify.OutcomeUnknown)
	b.round(0)
	b.round(3 * time.Minute)
	b.report(there)
	b.round(20 * time.Second)
	b.settle()
	degraded(notify.OutcomeCommitted)
	b.round(time.Second)
	if i := b.incidents(1)[0]; i.Cause != incident.DegradedPeer || len(moved(i)) != 1 {
		t.Errorf("cause %s, evidence %+v", i.Cause, i.Evidence)
	}
}

// TestIncidentBesideASwitch: what happened before or after it, to another service, or to no
// lock, says nothing of it.
func TestIncidentBesideASwitch(t *testing.T) {
	b := newBench(t)
	b.send("before", nil)
	b.round(0)
	b.round(time.Minute)
	b.report(there)
	b.send("k", func(ev *notify.Event) { ev.Service = "stock" })
	b.send("k", func(ev *notify.Event) {
		ev.Verdict, ev.Outcome = notify.VerdictUnknownCommit, notify.OutcomeUnknown
	})
	b.round(40 * time.Second)
	b.settle()
	b.round(time.Minute)
	b.send("after", expired)
	b.round(0)
	for _, i := range b.incidents(4) {
		if rows := moved(i); len(rows) != 0 {
			t.Errorf("%s of %s: %+v", i.Cause, i.Service, rows)
		}
	}
}

// TestSwitchThatNobodySaw: guard-monitor was away, and does not know when locks moved.
func TestSwitchThatNobodySaw(t *testing.T) {
	b := newBench(t)
	b.report(incident.Record{Epoch: 1, From: "redis", To: "redis", Settled: true})
	b.send("k", nil)
	b.settle()
	b.round(time.Second)
	if list, err := b.store.Switches(t.Context(), time.Time{}); err != nil || len(list) != 1 {
		t.Errorf("%d switches, %v", len(list), err)
	}
	if rows := moved(b.incidents(1)[0]); len(rows) != 0 {
		t.Errorf("evidence %+v", rows)
	}
}

// TestReportsThatWaited: RabbitMQ kept the heartbeats while guard-monitor was away, and hands
// all of them out at once.
func TestReportsThatWaited(t *testing.T) {
	b := newBench(t)
	b.send("k", nil)
	b.report(there)
	b.now = b.now.Add(50 * time.Millisecond)
	b.settle()
	b.round(time.Second)
	if rows := moved(b.incidents(1)[0]); len(rows) != 0 {
		t.Errorf("evidence %+v", rows)
	}
}

// TestIncidentThatComesBackAfterASwitch: the switch was in its earlier time.
func TestIncidentThatComesBackAfterASwitch(t *testing.T) {
	b := newBench(t)
	b.report(there)
	b.send("k", nil)
	b.round(0)
	b.settle()
	if n := len(moved(b.incidents(1)[0])); n != 1 {
		t.Fatalf("%d rows", n)
	}
	b.pass(11 * time.Minute)
	b.settle() // it still lives
	wantState(t, b.incidents(2)[0], incident.Resolved)
	b.send("k", nil)
	b.round(time.Second)
	b.round(time.Second)
	i := b.incidents(2)[0]
	wantState(t, i, incident.Regressed)
	if rows := moved(i); len(rows) != 0 {
		t.Errorf("it has %+v", rows)
	}
}

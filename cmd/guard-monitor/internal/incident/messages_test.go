package incident_test

import (
	"testing"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
	"github.com/belaygo/belay/notify"
)

// letter changes an event to that of a dead letter.
func letter(id string, undecided bool) func(*notify.Event) {
	return func(ev *notify.Event) {
		*ev = notify.Event{
			ID: ev.ID, Service: ev.Service, Instance: ev.Instance, Key: ev.Key, CaughtAt: ev.CaughtAt, Count: 1,
			Verdict: notify.VerdictDeadLetter, Outcome: notify.OutcomeCommitted,
			Message: &notify.DeadLetter{ID: id, Topic: "mail", StoredAt: ev.CaughtAt, Undecided: undecided},
		}
	}
}

// count sends a heartbeat that counts messages.
func (b *bench) count(instance string, dead, undecided int) {
	b.t.Helper()
	h := incident.Heartbeat{
		Service: "orders", Instance: instance, At: b.now, ReceivedAt: b.now, Every: 10 * time.Second,
		Messages: incident.Messages{Table: "shop.belay_message", Waiting: dead, Dead: dead, Undecided: undecided},
	}
	if err := b.store.AddHeartbeat(b.t.Context(), h); err != nil {
		b.t.Fatal(err)
	}
}

// Dead letters are an incident, and undecided ones another, that is critical. Each has a row for each
// message, and lasts until a heartbeat, sent after its last event, counts no such message.
func TestDeadLetters(t *testing.T) {
	b := newBench(t)
	b.send("a", letter("m1", false))
	b.send("b", letter("m2", false))
	b.send("c", letter("m3", true))
	b.round(0)
	states := func(dead, undecided incident.State) {
		t.Helper()
		for _, i := range b.incidents(2) {
			want, rows, severity := dead, 2, "warning"
			if i.Cause == incident.Undecided {
				want, rows, severity = undecided, 1, "critical"
			}
			if i.State != want || len(i.Evidence) != rows || i.Severity() != severity || i.Confidence != incident.High || i.Effect.Unknown+i.Effect.Failures != 0 {
				t.Errorf("%s is %s, want %s: %+v", i.Cause, i.State, want, i)
			}
		}
	}
	b.count("1", 0, 0) // it may have been counted before
	b.round(time.Second)
	states(incident.New, incident.New)
	goesOn := func(d time.Duration, dead, undecided int) {
		for range d / (10 * time.Second) {
			b.count("1", dead, undecided)
			b.round(10 * time.Second)
		}
	}
	goesOn(time.Hour, 3, 1)
	states(incident.New, incident.New)
	goesOn(30*time.Second, 1, 1) // the rejected ones are settled
	states(incident.Resolved, incident.New)
	goesOn(30*time.Second, 0, 0)
	states(incident.Resolved, incident.Resolved)
}

// A service whose heartbeats count no messages leaves an incident to its age.
func TestDeadLettersThatNobodyCounts(t *testing.T) {
	b := newBench(t)
	b.send("a", letter("m1", true))
	b.round(0)
	b.pass(9 * time.Minute)
	wantState(t, b.incidents(1)[0], incident.New)
	b.pass(2 * time.Minute)
	wantState(t, b.incidents(1)[0], incident.Resolved)
}

// A service that reports nothing any more leaves its incident open while it has dead letters, as far as
// is known.
func TestDeadLettersOfAServiceThatIsGone(t *testing.T) {
	b := newBench(t)
	b.send("a", letter("m1", false))
	b.round(0)
	b.count("1", 1, 0)
	b.pass(time.Hour)
	for _, i := range b.incidents(2) {
		if !i.State.Open() {
			t.Errorf("%s is over", i.Cause)
		}
	}
}

// uncounted sends a heartbeat whose count has failed.
func (b *bench) uncounted(instance string) {
	b.t.Helper()
	h := incident.Heartbeat{Service: "orders", Instance: instance, At: b.now, ReceivedAt: b.now, Every: 10 * time.Second}
	if err := b.store.AddHeartbeat(b.t.Context(), h); err != nil {
		b.t.Fatal(err)
	}
}

// Heartbeats whose count fails do not end an incident of messages that were counted, and nor do those
// that count again while the messages are there.
func TestDeadLettersOfACountThatFails(t *testing.T) {
	b := newBench(t)
	b.send("a", letter("m1", true))
	b.round(0)
	want := func(when string, want incident.State) {
		t.Helper()
		if got := b.incidents(1)[0].State; got != want {
			t.Fatalf("%s it is %s, want %s", when, got, want)
		}
	}
	goesOn := func(send func()) {
		for range 120 {
			send()
			b.round(10 * time.Second)
		}
	}
	goesOn(func() { b.count("1", 1, 1) })
	want("counted,", incident.New)
	b.uncounted("1")
	b.round(time.Second)
	want("after one heartbeat without a count", incident.New)
	goesOn(func() { b.uncounted("1") })
	want("after many", incident.New)
	b.count("1", 1, 1)
	b.round(10 * time.Second)
	want("counted again,", incident.New)
	b.count("1", 0, 0)
	b.round(10 * time.Second)
	want("settled,", incident.Resolved)
}

// A heartbeat that waited in its queue, for a connection that was lost, may have been counted before the
// event: also if the connection was back at once, or is lost again.
func TestDeadLettersOfAHeartbeatThatWaited(t *testing.T) {
	for name, lose := range map[string]func(*bench){
		"for a while": func(b *bench) {
			b.listening = false
			b.round(time.Second)
			b.listening = true
		},
		"for a moment": func(b *bench) { b.breaks++ },
		"and again": func(b *bench) {
			b.breaks++
			b.round(0)
			b.listening = false
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.round(0)
			counted := b.now
			b.send("a", letter("m1", true))
			b.pass(time.Minute)
			lose(b)
			h := incident.Heartbeat{
				Service: "orders", Instance: "1", At: counted, ReceivedAt: b.now, Every: 10 * time.Second,
				Messages: incident.Messages{Table: "shop.belay_message"},
			}
			if err := b.store.AddHeartbeat(t.Context(), h); err != nil {
				t.Fatal(err)
			}
			b.round(time.Second)
			wantState(t, b.incidents(1)[0], incident.New)
			b.listening = true
			for range 3 {
				b.count("1", 1, 1)
				b.round(10 * time.Second)
			}
			wantState(t, b.incidents(1)[0], incident.New)
			for range 3 {
				b.count("1", 0, 0)
				b.round(10 * time.Second)
			}
			wantState(t, b.incidents(1)[0], incident.Resolved)
		})
	}
}

// An incident waits for a count if the last one was before its event, and all that should come since have
// failed.
func TestDeadLettersOfCountsThatFailSince(t *testing.T) {
	b := newBench(t)
	b.count("1", 0, 0)
	b.round(time.Second)
	b.send("a", letter("m1", true))
	for range 36 {
		b.uncounted("1")
		b.round(20 * time.Second)
	}
	wantState(t, b.incidents(1)[0], incident.New)
	b.count("1", 0, 0)
	b.round(time.Second)
	wantState(t, b.incidents(1)[0], incident.Resolved)
}

// Two databases may have one name, on two servers: an incident lasts while one of them has its messages.
func TestDeadLettersOfOneOfTwoDatabases(t *testing.T) {
	b := newBench(t)
	b.send("a", letter("m1", true))
	b.round(0)
	goesOn := func(dead int) incident.State {
		for range 12 {
			b.count("1", dead, dead)
			b.round(5 * time.Second)
			b.count("2", 0, 0)
			b.round(5 * time.Second)
		}
		return b.incidents(1)[0].State
	}
	if got := goesOn(1); got != incident.New {
		t.Errorf("it is %s", got)
	}
	if got := goesOn(0); got != incident.Resolved {
		t.Errorf("settled, it is %s", got)
	}
}

// What an instance counted that is gone says nothing once another one counts the same table.
func TestDeadLettersThatAnotherInstanceSawSettled(t *testing.T) {
	b := newBench(t)
	b.send("a", letter("m1", true))
	b.round(0)
	b.count("1", 1, 1)
	for range 12 {
		b.round(10 * time.Second)
		b.count("2", 0, 0)
	}
	b.round(0)
	wantState(t, b.incidents(1)[0], incident.Resolved)
}

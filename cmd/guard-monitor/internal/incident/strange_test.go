package incident_test

import (
	"strings"
	"testing"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/watch"
	"github.com/belaygo/belay/notify"
)

// A touchy bench panics where an event has been at no node.
type touchy struct{ *bench }

func (b touchy) Locate(p notify.Place) (watch.Location, bool) {
	if p.Node == "" {
		panic("no node")
	}
	return b.bench.Locate(p)
}

// A fault of the monitor in what it makes of one event holds up no other, and ends nothing.
func TestEventThatPanics(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.locator = touchy{b}
	b.tracker = b.track(b.store)
	for range 2 { // the second time what it explains again is the first
		b.send("k", func(ev *notify.Event) { ev.Place = notify.Place{Slot: -1} })
		b.send("k", nil)
		b.saw(failover(-2))
		b.round(6 * time.Second)
	}
	events := make(map[incident.Cause]int64)
	for _, i := range b.incidents(2) {
		events[i.Cause] += i.Events
	}
	if events[incident.Unknown] != 2 || events[incident.Failover] != 2 {
		t.Errorf("events by cause: %v", events)
	}
}

// A clock that is wrong by years dates no incident, and makes no fault of long ago the cause.
func TestClocksThatAreWrongByYears(t *testing.T) {
	t.Parallel()
	for _, caught := range []time.Time{
		time.Date(1, 1, 2, 0, 0, 0, 0, time.UTC), time.Unix(0, 0).UTC(), time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC),
	} {
		t.Run(caught.Format("2006"), func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.saw(failover(-300))
			ev := overlap(nil)
			ev.CaughtAt, ev.AcquiredAt, ev.Deadline = caught, caught, caught
			if _, err := b.store.Add(t.Context(), ev, nil, ""); err != nil {
				t.Fatal(err)
			}
			b.round(time.Second)
			i := b.incidents(1)[0]
			for name, at := range map[string]time.Time{"first": i.FirstAt, "last": i.LastAt, "evidence": i.Evidence[0].At} {
				if at.Sub(b.now).Abs() > time.Minute {
					t.Errorf("%s at %v, want about %v", name, at, b.now)
				}
			}
			if i.Cause != incident.Unknown || !strings.Contains(evidence(i), "says that it is "+caught.Format("2006-01-02")) {
				t.Errorf("cause %s:\n%s", i.Cause, evidence(i))
			}
		})
	}
}

// A holder that lost its lock is known though its clock is wrong by years: nobody is accused of
// a bypass.
func TestLateHolderWithAStrangeClock(t *testing.T) {
	t.Parallel()
	for _, said := range []time.Time{time.Unix(0, 0), time.Date(9000, 1, 1, 0, 0, 0, 0, time.UTC)} {
		b := newBench(t)
		b.send("k", func(ev *notify.Event) {
			expired(ev)
			ev.Instance, ev.Owner, ev.Outcome = "strange", "b:1", notify.OutcomeCommitted
			ev.AcquiredAt, ev.Deadline, ev.CaughtAt = said.Add(-4*time.Second), said.Add(-time.Second), said
		})
		b.send("k", intruded)
		b.round(0)
		for _, i := range b.incidents(1) {
			if i.Cause == incident.Bypass || i.Events != 2 {
				t.Errorf("clock at %v: cause %s of %d events\n%s", said, i.Cause, i.Events, evidence(i))
			}
		}
	}
}

// An event that waited for days, and one of a clock that is a day ahead, are believed.
func TestClocksThatAreBelieved(t *testing.T) {
	at := time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	for by, believed := range map[time.Duration]bool{-29 * 24 * time.Hour: true, 23 * time.Hour: true, -366 * 24 * time.Hour: false, 25 * time.Hour: false} {
		want := at
		if believed {
			want = at.Add(by)
		}
		if got := incident.CaughtAt(notify.Event{CaughtAt: at.Add(by)}, at); !got.Equal(want) {
			t.Errorf("%v: %v, want %v", by, got, want)
		}
	}
}

//go:build failpoints

package failpoints_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/store"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/notify"
)

// monitored is how many events a monitor gets, each of a service of its own, and so of an
// incident and a message of its own.
const monitored = 3

// killMonitor has a monitor die at the nth passage of a point, and another one carry on with
// its store.
func (s *stage) killMonitor(t *testing.T, point string, nth int) {
	dir := t.TempDir()
	r := monitorRole{AMQP: teststack.AMQP(t), Store: filepath.Join(dir, "monitor.db"), Told: filepath.Join(dir, "told")}
	victim := start(t, "victim", fmt.Sprintf("%s:%d", point, nth), role{Monitor: &r})
	var events []notify.Event
	publisher := newPublisher(t, r.AMQP)
	for n := range monitored {
		ev := newEvent(fmt.Sprint("service-", n), fmt.Sprint("order:", n))
		testwait.Until(t, "the monitor's queue takes an event", func() bool { return publisher.Publish(t.Context(), ev) == nil })
		events = append(events, ev)
	}
	if !victim.died() {
		t.Fatalf("the monitor did not die at %s", point)
	}
	s.deaths.Add(1)

	start(t, "survivor", "", role{Monitor: &r})
	l := monitorLedger{t, openStore(t, r.Store), r.Told}
	// When people were told of the second of two events, one after the other, the survivor
	// has gone through all of its incidents once.
	for n := range 2 {
		ev := newEvent(fmt.Sprint("survivor-", n), fmt.Sprint("survivor:", n))
		testwait.Until(t, "the monitor's queue takes an event", func() bool { return publisher.Publish(t.Context(), ev) == nil })
		events = append(events, ev)
		testwait.Until(t, "people are told of each event", func() bool { return len(l.untold(events)) == 0 })
	}
	l.check(events, point)
}

// monitorLedger is what a monitor has stored and told.
type monitorLedger struct {
	*testing.T
	store *store.Store
	path  string // of the file that stands for people
}

// stored returns the events in the store.
func (l monitorLedger) stored() (list []store.Received) {
	l.Helper()
	list, err := l.store.Events(l.Context(), store.EventFilter{})
	if err != nil {
		l.Fatal(err)
	}
	return list
}

// untold returns the events of whose incident nobody was told, or that the store does not
// say so of.
func (l monitorLedger) untold(events []notify.Event) (ids []string) {
	l.Helper()
	stored, told := l.stored(), l.told()
	for _, ev := range events {
		i := slices.IndexFunc(stored, func(r store.Received) bool { return r.Event.ID == ev.ID })
		if i < 0 || !slices.Contains(told, stored[i].Incident) || !l.logged(stored[i].Incident) {
			ids = append(ids, ev.ID)
		}
	}
	return ids
}

func (l monitorLedger) told() []string {
	l.Helper()
	text, err := os.ReadFile(l.path)
	if err != nil {
		l.Fatal(err)
	}
	return strings.Fields(string(text))
}

func (l monitorLedger) logged(incident string) bool {
	l.Helper()
	list, err := l.store.Notifications(l.Context(), incident, 10)
	if err != nil {
		l.Fatal(err)
	}
	return slices.ContainsFunc(list, func(n store.Notification) bool { return n.Error == "" })
}

// check wants each event once, in an incident of its own, which people were told of once:
// twice only if the monitor died between the message and its log.
func (l monitorLedger) check(events []notify.Event, point string) {
	l.Helper()
	stored, told := l.stored(), l.told()
	if len(stored) != len(events) {
		l.Errorf("the store has %d events, want %d", len(stored), len(events))
	}
	most := 1
	if point == "dispatch/sent" {
		most = 2
	}
	for _, r := range stored {
		n := 0
		for _, id := range told {
			if id == r.Incident {
				n++
			}
		}
		if n > most {
			l.Errorf("people were told %d times of event %s, want at most %d", n, r.Event.ID, most)
		}
		i, err := l.store.Incident(l.Context(), r.Incident)
		if err != nil || i.Events != 1 {
			l.Errorf("incident %s has %d events, want 1: %v", r.Incident, i.Events, err)
		}
	}
}

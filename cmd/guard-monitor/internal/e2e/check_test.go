package e2e_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/notify"
)

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func (s *stage) want(result, prefix string) {
	s.t.Helper()
	if !strings.HasPrefix(result, prefix) {
		s.t.Fatalf("result is %q, want %s", result, prefix)
	}
}

// reported returns the events of the instances in the monitor's store: those of
// one key, or all if key is empty.
func (s *stage) reported(key string) (found []notify.Event) {
	s.t.Helper()
	all, err := s.events.Recent(context.Background(), 1000)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, r := range all {
		if r.Event.Service == "e2e" && (key == "" || r.Event.Key == key) {
			found = append(found, r.Event)
		}
	}
	return found
}

// event waits until the monitor has the one event of key, and until it has told
// people of it.
func (s *stage) event(key string, v notify.Verdict, o notify.Outcome) notify.Event {
	s.t.Helper()
	testwait.Until(s.t, "the monitor stores the event", func() bool { return len(s.reported(key)) > 0 })
	events := s.reported(key)
	if len(events) != 1 || events[0].Verdict != v || events[0].Outcome != o {
		s.t.Fatalf("events of %q are %+v, want one: %s, %s", key, events, v, o)
	}
	ev := events[0]
	testwait.Until(s.t, "the monitor prints the alert", func() bool { return s.alerts(key) > 0 })
	if n := s.alerts(key); n != 1 {
		s.t.Fatalf("%d alerts of %q, want 1", n, key)
	}
	return ev
}

// alerts counts the monitor's alert lines that name key.
func (s *stage) alerts(key string) (n int) {
	for _, line := range s.monitor.Lines() {
		if strings.Contains(line, key) {
			n++
		}
	}
	return n
}

// wantLock checks what an event of a conflict says of the lock that failed.
func (s *stage) wantLock(ev notify.Event, at shard, owner string) {
	s.t.Helper()
	if ev.Owner != owner || ev.Token == 0 || ev.Instance != "A" {
		s.t.Errorf("event tells of owner %s, token %d of %s, want %s of A", ev.Owner, ev.Token, ev.Instance, owner)
	}
	if want := (notify.Place{Node: at.master, Slot: at.slot}); ev.Place != want {
		s.t.Errorf("event tells of %+v, want %+v", ev.Place, want)
	}
	if ev.HolderAtConflict != notify.HolderNone {
		s.t.Errorf("holder at the conflict is %s, want none: B is done", ev.HolderAtConflict)
	}
}

// orders returns the number of rows of an order, which must be one, of the
// given instance.
func (s *stage) orders(no, instance string) int {
	s.t.Helper()
	var rows []Order
	if err := s.db.Where("no = ?", no).Find(&rows).Error; err != nil {
		s.t.Fatal(err)
	}
	if len(rows) != 1 || rows[0].Instance != instance {
		s.t.Errorf("rows of order %s are %+v, want one of %s", no, rows, instance)
	}
	return len(rows)
}

func (s *stage) summary(ev notify.Event, rows int) string {
	return fmt.Sprintf("verdict %s, outcome %s, %d row, 1 event, holder at conflict %q, lock on %s slot %d",
		ev.Verdict, ev.Outcome, rows, ev.HolderAtConflict, ev.Place.Node, ev.Place.Slot)
}

// drained waits until the monitor has all that was sent so far: the queue keeps
// the order, and an event sent now is the last.
func (s *stage) drained() {
	s.t.Helper()
	var left int64
	if err := s.db.Table("belay_outbox").Count(&left).Error; err != nil || left != 0 {
		s.t.Fatalf("%d rows are left in the outbox: %v", left, err)
	}
	mark := "mark-" + s.t.Name()
	if err := s.publish(mark); err != nil {
		s.t.Fatal(err)
	}
	testwait.Until(s.t, "the monitor has everything", func() bool {
		all, err := s.events.Recent(context.Background(), 1000)
		if err != nil {
			s.t.Fatal(err)
		}
		for _, r := range all {
			if r.Event.Service == mark {
				return true
			}
		}
		return false
	})
}

// nothingElse checks that the cases reported one event each, but the repeat, the requests, and
// the sale, which looks at its own.
func (s *stage) nothingElse() {
	s.t.Helper()
	s.drained()
	got := slices.DeleteFunc(s.reported(""), func(ev notify.Event) bool { return ev.Key == soldKey })
	if len(got) != 5 && !s.t.Failed() {
		s.t.Errorf("%d events in all, want 5: %+v", len(got), got)
	}
}

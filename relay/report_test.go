package relay_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/message"
	"github.com/belaygo/belay/internal/testmetric"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/notify"
	"github.com/belaygo/belay/relay"
)

// events is a publisher that keeps what it gets, and blocks until it is open, whatever its context says.
type events struct {
	mu   sync.Mutex
	got  []notify.Event
	open chan struct{} // nil: it is
}

func (e *events) Publish(_ context.Context, ev notify.Event) error {
	if e.open != nil {
		<-e.open
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.got = append(e.got, ev)
	return ev.Validate()
}

func (e *events) all() []notify.Event {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.got)
}

// reporting is a quick relay whose route rejects the keys that begin with "bad", and accepts no others.
func reporting(e *events) relay.Config {
	cfg := relay.Quick(relay.Config{Service: "shop", Instance: "shop/1", Publisher: e, Routes: []relay.Route{{
		Topic: "sale", Until: time.Hour,
		Handle: func(_ context.Context, m relay.Message) error {
			if strings.HasPrefix(m.Key, "bad") {
				return relay.ErrRejected
			}
			return errors.New("not now")
		},
	}}})
	return relay.WithPause(cfg, time.Hour)
}

// Each message that becomes a dead letter has one event, which says whether it may have taken effect.
// One that is only tried again has none. After Retry, it has another one.
func TestDeadLetterIsReported(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *gorm.DB) {
		e := new(events)
		store(t, db, row("late", 0))
		if err := db.Exec("UPDATE belay_message SET created_at = created_at - ?", 2*time.Hour/time.Millisecond).Error; err != nil {
			t.Fatal(err)
		}
		store(t, db, row("bad", 0), row("bad", 1), row("slow", 0))
		r := start(t, db, reporting(e))
		testwait.Until(t, "all keys are parked", func() bool { return count(t, db, "belay_parked") == 3 })
		testwait.Until(t, "both are reported", func() bool { return len(e.all()) == 2 })
		ids := make(map[string]bool)
		for _, ev := range e.all() {
			ids[ev.ID] = true
			m := ev.Message
			if err := ev.Validate(); err != nil || m == nil {
				t.Fatalf("event %+v: %v", ev, err)
			}
			undecided := m.ID == "late/0"
			if ev.Verdict != notify.VerdictDeadLetter || ev.Service != "shop" || ev.Instance != "shop/1" || ev.Count != 1 ||
				ev.Key+"/0" != m.ID || m.Topic != "sale" || m.Undecided != undecided || m.StoredAt.IsZero() || (m.Attempts == 0) != undecided {
				t.Errorf("event %+v of message %+v", ev, m)
			}
		}
		if err := retry(db, "bad/0"); err != nil {
			t.Fatal(err)
		}
		testwait.Until(t, "it is reported again", func() bool { return len(e.all()) == 3 })
		if again := e.all()[2]; again.Message.ID != "bad/0" || ids[again.ID] {
			t.Errorf("again: %+v of %+v", again, again.Message)
		}
		if err := r.Close(bg); err != nil {
			t.Fatal(err)
		}
		if got := e.all(); len(got) != 3 {
			t.Errorf("%d events", len(got))
		}
	})
}

// A publisher that hangs holds up no message. Many dead letters share an event, and Close waits for what
// is to be reported.
func TestManyDeadLetters(t *testing.T) {
	t.Parallel()
	const n = 300
	db := openSQLite(t)
	e := &events{open: make(chan struct{})}
	r := start(t, db, reporting(e))
	var rows []message.Row
	for i := range n {
		rows = append(rows, row(fmt.Sprintf("bad%d", i), 0))
	}
	store(t, db, rows...)
	testwait.Until(t, "all are dead letters", func() bool { return count(t, db, "belay_parked WHERE dead = 1") == n })
	if got := e.all(); len(got) != 0 {
		t.Fatalf("%d events came through", len(got))
	}
	close(e.open)
	if err := r.Close(bg); err != nil {
		t.Fatal(err)
	}
	sum, ids := 0, make(map[string]bool)
	for _, ev := range e.all() {
		sum += ev.Count
		ids[ev.ID] = true
	}
	if sum != n || len(ids) != len(e.all()) || len(ids) == n {
		t.Errorf("%d events with %d ids stand for %d dead letters", len(e.all()), len(ids), sum)
	}
}

// A publisher that never returns does not keep Close, whose context is about messages alone.
func TestCloseWhileReporting(t *testing.T) {
	t.Parallel()
	db := openSQLite(t)
	e := &events{open: make(chan struct{})}
	defer close(e.open)
	r := start(t, db, relay.WithReportTime(reporting(e), time.Millisecond))
	store(t, db, row("bad", 0))
	testwait.Until(t, "it is a dead letter", func() bool { return count(t, db, "belay_parked WHERE dead = 1") == 1 })
	if err := r.Close(bg); err != nil {
		t.Errorf("Close: %v", err)
	}
	if got := e.all(); len(got) != 0 {
		t.Errorf("%d events came through", len(got))
	}
}

// A relay that has lost the lane of a message reports nothing of it: the other relay may have sent it.
func TestDeadLetterOfALostLane(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *gorm.DB) {
		e := new(events)
		in, out := make(chan struct{}), make(chan struct{})
		cfg := relay.Quick(relay.Config{Service: "shop", Publisher: e, Routes: []relay.Route{{
			Topic: relay.Others, Until: time.Hour,
			Handle: func(_ context.Context, m relay.Message) error {
				if m.Key == "lost" {
					close(in)
					<-out
				}
				return relay.ErrRejected
			},
		}}})
		r := start(t, db, relay.WithLease(cfg, time.Minute)) // so that it does not notice
		store(t, db, row("lost", 0))
		<-in
		// Another relay takes its lane, and sends the message.
		for _, s := range []string{
			"UPDATE belay_lane SET owner = 'other' WHERE lane = (SELECT lane FROM belay_message)", "DELETE FROM belay_message",
		} {
			if err := db.Exec(s).Error; err != nil {
				t.Fatal(err)
			}
		}
		close(out)
		var later []message.Row
		for n := range 20 { // of which some are in other lanes
			later = append(later, row(fmt.Sprintf("later%d", n), 0))
		}
		store(t, db, later...)
		testwait.Until(t, "a later one is reported", func() bool { return len(e.all()) > 0 })
		if err := r.Close(bg); err != nil {
			t.Fatal(err)
		}
		got, dead := e.all(), count(t, db, "belay_parked WHERE dead > 0")
		if len(got) != dead || slices.ContainsFunc(got, func(ev notify.Event) bool { return ev.Message.ID == "lost/0" }) {
			t.Errorf("events of %d dead letters: %+v", dead, got)
		}
		if got := testmetric.Sum(t, r, "belay_relay_dead_total"); got != float64(dead) {
			t.Errorf("%v dead letters are counted, want %d", got, dead)
		}
	})
}

func TestPublisherNeedsService(t *testing.T) {
	db := openSQLite(t)
	cfg := reporting(new(events))
	cfg.Service = ""
	if _, err := relay.New(db, cfg); err == nil || !strings.Contains(err.Error(), "Service") {
		t.Errorf("New: %v", err)
	}
}

package outbox_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/testlog"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/notify"
	"github.com/belaygo/belay/notify/outbox"
)

func TestStoredEventsAreRelayed(t *testing.T) {
	onEach(t, func(t *testing.T, db *gorm.DB) {
		var relay recorder
		o := open(t, db, outbox.Config{Relay: &relay}.With(outbox.Limits{PollInterval: time.Hour, BatchSize: 2}))
		publish(t, o, 1, 2, 3, 4, 5)
		testwait.Until(t, "the table is empty", func() bool { return rows(t, db) == 0 })
		if !relay.tookAll(1, 2, 3, 4, 5) {
			t.Errorf("relayed %v times", relay.took(1, 2, 3, 4, 5))
		}
		metrics(t, o, `
			belay_outbox_stored_total{name="outbox"} 5
			belay_outbox_published_total{name="outbox"} 5
			belay_outbox_backlog{name="outbox"} 0`)
	})
}

func TestRelayGoesOnWhenTheBrokerIsBack(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db *gorm.DB) {
		var relay recorder
		relay.failWith(down)
		o := open(t, db, outbox.Config{Relay: &relay})
		publish(t, o, 1, 2, 3)
		testwait.Until(t, "the relay has tried", func() bool { return relay.asked() > 1 })
		if n := rows(t, db); n != 3 {
			t.Fatalf("%d rows while the broker is down, want 3", n)
		}
		relay.failWith(nil)
		testwait.Until(t, "the table is empty", func() bool { return rows(t, db) == 0 })
		for i, times := range relay.took(1, 2, 3) {
			if times != 1 {
				t.Errorf("event %d was relayed %d times, want once", i+1, times)
			}
		}
	})
}

// TestEventWithoutAnAnswerIsKept: a broker that does not answer in time may not have the
// event.
func TestEventWithoutAnAnswerIsKept(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db *gorm.DB) {
		var relay recorder
		relay.failWith(func(notify.Event) error { return fmt.Errorf("no confirm: %w", context.DeadlineExceeded) })
		publish(t, open(t, db, outbox.Config{Relay: &relay}), 1)
		testwait.Until(t, "the relay has tried", func() bool { return relay.asked() > 0 })
		relay.failWith(nil)
		testwait.Until(t, "the table is empty", func() bool { return rows(t, db) == 0 })
		if times := relay.took(1)[0]; times != 1 {
			t.Errorf("the event was relayed %d times, want once", times)
		}
	})
}

func TestRowsOfAnEarlierProcessAreRelayed(t *testing.T) {
	onEach(t, func(t *testing.T, db *gorm.DB) {
		earlier := open(t, db, outbox.Config{})
		publish(t, earlier, 1, 2)
		closeNow(earlier)
		var relay recorder
		open(t, db, outbox.Config{Relay: &relay}.With(outbox.Limits{PollInterval: time.Hour}))
		testwait.Until(t, "the rows are relayed", func() bool { return relay.tookAll(1, 2) })
	})
}

func TestRowsOfAnotherProcessAreFoundByPolling(t *testing.T) {
	onEach(t, func(t *testing.T, db *gorm.DB) {
		var relay recorder
		open(t, db, outbox.Config{Relay: &relay}.With(outbox.Limits{PollInterval: 10 * time.Millisecond}))
		other := open(t, db, outbox.Config{})
		for n := range 3 {
			publish(t, other, n)
			testwait.Until(t, "the row is relayed", func() bool { return relay.tookAll(n) })
		}
	})
}

func TestTableThatComesLater(t *testing.T) {
	onEach(t, func(t *testing.T, db *gorm.DB) {
		drop(t, db)
		var relay recorder
		o := open(t, db, outbox.Config{Relay: &relay}.With(outbox.Limits{PollInterval: 10 * time.Millisecond}))
		migrated(t, db)
		publish(t, o, 1)
		testwait.Until(t, "the table is empty", func() bool { return rows(t, db) == 0 })
		if !relay.tookAll(1) {
			t.Error("the event was not relayed")
		}
	})
}

func TestUnreadableRowStaysAndBlocksNobody(t *testing.T) {
	onEach(t, func(t *testing.T, db *gorm.DB) {
		for _, body := range []string{"no event", `{"specversion":"1.0"}`, ""} {
			if err := db.Exec("INSERT INTO belay_outbox (event_id, body) VALUES (?, ?)", "bad-"+body[:min(2, len(body))], body).Error; err != nil {
				t.Fatal(err)
			}
		}
		var relay recorder
		var log testlog.Buffer
		o := open(t, db, outbox.Config{Relay: &relay, Logger: slog.New(slog.NewTextHandler(&log, nil))}.With(outbox.Limits{BatchSize: 1, PollInterval: time.Millisecond}))
		publish(t, o, 1, 2)
		testwait.Until(t, "the events behind are relayed", func() bool { return relay.tookAll(1, 2) })
		if err := o.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := rows(t, db); n != 3 {
			t.Errorf("%d rows are left, want the 3 that are no events", n)
		}
		metrics(t, o, `
			belay_outbox_unreadable_total{name="outbox"} 3
			belay_outbox_published_total{name="outbox"} 2
			belay_outbox_backlog{name="outbox"} 3`)
		if n := strings.Count(log.String(), "stored row is no event"); n != 3 {
			t.Errorf("told %d times, want once for each row:\n%s", n, log.String())
		}
	})
}

// A rawRecorder takes events as they are stored.
type rawRecorder struct {
	recorder

	mu     sync.Mutex
	bodies []string
}

func (r *rawRecorder) PublishRaw(_ context.Context, body []byte) error {
	if !json.Valid(body) {
		return notify.ErrInvalidEvent
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.bodies = append(r.bodies, string(body))
	return nil
}

func (r *rawRecorder) has(body string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Contains(r.bodies, body)
}

// A newer version has stored an event with members that this one does not know. They
// are handed on, byte by byte. What is no event stays.
func TestRelayHandsOnTheStoredBytes(t *testing.T) {
	onEach(t, func(t *testing.T, db *gorm.DB) {
		const newer = `{"specversion":"1.0", "later":[1], "data":{"verdict":"unheard_of","later":{"a":"\u4e2d"}}}`
		for id, body := range map[string]string{"newer": newer, "bad": "no event"} {
			if err := db.Exec("INSERT INTO belay_outbox (event_id, body) VALUES (?, ?)", id, body).Error; err != nil {
				t.Fatal(err)
			}
		}
		var relay rawRecorder
		o := open(t, db, outbox.Config{Relay: &relay, Logger: slog.New(slog.DiscardHandler)})
		publish(t, o, 1)
		testwait.Until(t, "the events are relayed", func() bool { return rows(t, db) == 1 })
		if err := o.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if !relay.has(newer) || len(relay.bodies) != 2 {
			t.Errorf("relayed %q, want two, among them\n%s", relay.bodies, newer)
		}
		if n := relay.asked(); n != 0 {
			t.Errorf("%d events were decoded and published, want none", n)
		}
		metrics(t, o, `
			belay_outbox_unreadable_total{name="outbox"} 1
			belay_outbox_published_total{name="outbox"} 2`)
	})
}

func TestRefusedEventBlocksNobody(t *testing.T) {
	onEach(t, func(t *testing.T, db *gorm.DB) {
		var relay recorder
		relay.failWith(func(ev notify.Event) error {
			if ev.ID == event(1).ID || ev.ID == event(2).ID {
				return errors.New("not this one")
			}
			return nil
		})
		o := open(t, db, outbox.Config{Relay: &relay}.With(outbox.Limits{BatchSize: 1}))
		publish(t, o, 1, 2, 3, 4)
		testwait.Until(t, "the events behind are relayed", func() bool { return relay.tookAll(3, 4) })
		testwait.Until(t, "only the refused are left", func() bool { return rows(t, db) == 2 })
		relay.failWith(nil)
		if err := o.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := rows(t, db); n != 0 || !relay.tookAll(1, 2) {
			t.Errorf("%d rows are left, relayed %v times", n, relay.took(1, 2))
		}
	})
}

func TestCloseDrains(t *testing.T) {
	onEach(t, func(t *testing.T, db *gorm.DB) {
		var relay recorder
		relay.failWith(down)
		var log testlog.Buffer
		o := open(t, db, outbox.Config{Relay: &relay, Logger: slog.New(slog.NewTextHandler(&log, nil))}.With(outbox.Limits{PollInterval: time.Hour}))
		publish(t, o, 1, 2, 3)
		testwait.Until(t, "the relay has tried", func() bool { return relay.asked() > 0 })
		relay.failWith(nil)
		for range 2 {
			if err := o.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if n := rows(t, db); n != 0 || !relay.tookAll(1, 2, 3) {
			t.Errorf("%d rows are left, relayed %v times", n, relay.took(1, 2, 3))
		}
		if err := o.Publish(t.Context(), event(4)); !errors.Is(err, outbox.ErrClosed) {
			t.Errorf("publish after close: err = %v, want ErrClosed", err)
		}
		if !strings.Contains(log.String(), event(4).ID) {
			t.Errorf("the log lacks the event that came too late: %s", log.String())
		}
	})
}

func TestCloseEndsWithItsContext(t *testing.T) {
	onEach(t, func(t *testing.T, db *gorm.DB) {
		hanging := make(chan struct{}, 1)
		hang := notify.PublisherFunc(func(ctx context.Context, _ notify.Event) error {
			select {
			case hanging <- struct{}{}:
			default:
			}
			<-ctx.Done()
			return ctx.Err()
		})
		o := open(t, db, outbox.Config{Relay: hang, RelayTimeout: time.Minute})
		publish(t, o, 1, 2)
		<-hanging
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if err := o.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("err = %v, want DeadlineExceeded", err)
		}
		if n := rows(t, db); n != 2 {
			t.Fatalf("%d rows are left, want 2", n)
		}
		var relay recorder
		next := open(t, db, outbox.Config{Relay: &relay})
		if err := next.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if !relay.tookAll(1, 2) {
			t.Errorf("the next process relayed %v times", relay.took(1, 2))
		}
	})
}

func TestPublishWhileClosing(t *testing.T) {
	onEach(t, func(t *testing.T, db *gorm.DB) {
		var relay recorder
		o := open(t, db, outbox.Config{Relay: &relay})
		const n = 50
		accepted := make([]bool, n)
		var publishers sync.WaitGroup
		started := make(chan struct{}, n)
		for i := range n {
			publishers.Go(func() {
				started <- struct{}{}
				switch err := o.Publish(t.Context(), event(i)); {
				case err == nil:
					accepted[i] = true
				case !errors.Is(err, outbox.ErrClosed):
					t.Errorf("err = %v, want nil or ErrClosed", err)
				}
			})
		}
		for range n / 2 {
			<-started
		}
		if err := o.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		publishers.Wait()
		for i, ok := range accepted {
			if times := relay.took(i)[0]; ok && times != 1 || !ok && times != 0 {
				t.Errorf("event %d: accepted %v, relayed %d times", i, ok, times)
			}
		}
		if n := rows(t, db); n != 0 {
			t.Errorf("%d rows are left", n)
		}
	})
}

// Two processes relay one table to a broker that fails every second time: each
// event arrives, none is left behind.
func TestNothingIsLostBetweenTwoUnreliableRelays(t *testing.T) {
	onEach(t, func(t *testing.T, db *gorm.DB) {
		var relay recorder
		relay.failWith(func(notify.Event) error {
			if rand.IntN(2) == 0 {
				return errDown
			}
			return nil
		})
		var events []int
		outboxes := []*outbox.Outbox{
			open(t, db, outbox.Config{Relay: &relay}.With(outbox.Limits{BatchSize: 3})),
			open(t, db, outbox.Config{Relay: &relay}.With(outbox.Limits{BatchSize: 4})),
		}
		var publishers sync.WaitGroup
		for i := range 40 {
			events = append(events, i)
			publishers.Go(func() {
				if err := outboxes[i%2].Publish(t.Context(), event(i)); err != nil {
					t.Error(err)
				}
			})
		}
		publishers.Wait()
		relay.failWith(nil)
		for _, o := range outboxes {
			if err := o.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if !relay.tookAll(events...) || rows(t, db) != 0 {
			t.Errorf("relayed %v times, %d rows are left", relay.took(events...), rows(t, db))
		}
	})
}

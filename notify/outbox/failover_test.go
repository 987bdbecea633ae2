package outbox_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/notify"
	"github.com/belaygo/belay/notify/outbox"
)

// failOver puts the table where it is on a promoted replica that has not got the
// last row: another event is stored under the id of that row.
func failOver(t *testing.T, db *gorm.DB, other *outbox.Outbox, lost, stored int) {
	t.Helper()
	id := func(n int) (id int64) {
		t.Helper()
		if err := db.Raw("SELECT id FROM belay_outbox WHERE event_id = ?", event(n).ID).Scan(&id).Error; err != nil {
			t.Error(err)
		}
		return id
	}
	was := id(lost)
	if err := db.Exec("DELETE FROM belay_outbox WHERE id >= ?", was).Error; err != nil {
		t.Error(err)
	}
	if err := other.Publish(context.Background(), event(stored)); err != nil {
		t.Error(err)
	}
	if err := db.Exec("UPDATE belay_outbox SET id = ? WHERE event_id = ?", was, event(stored).ID).Error; err != nil {
		t.Error(err)
	}
	if got := id(stored); got != was || was == 0 {
		t.Errorf("event %d has id %d, want %d", stored, got, was)
	}
}

// Between the confirm of an event and the DELETE of its row the database fails
// over, and the id of the row goes to another event. That event is published.
func TestDeleteSparesAnotherEventOfTheSameID(t *testing.T) {
	onEach(t, func(t *testing.T, db *gorm.DB) {
		other := open(t, db, outbox.Config{})
		publish(t, other, 1)
		var relay recorder
		var once sync.Once
		open(t, db, outbox.Config{Relay: notify.PublisherFunc(func(ctx context.Context, ev notify.Event) error {
			once.Do(func() { failOver(t, db, other, 1, 2) })
			return relay.Publish(ctx, ev)
		}),
		}.With(outbox.Limits{PollInterval: 10 * time.Millisecond}))
		testwait.Until(t, "the table is empty", func() bool { return relay.tookAll(1) && rows(t, db) == 0 })
		if !relay.tookAll(1, 2) {
			t.Errorf("events 1 and 2 were published %v times", relay.took(1, 2))
		}
	})
}

// A publish fails, and meanwhile another event, which another relay has leased,
// has got the id of the row. It is neither released nor postponed.
func TestPostponeSparesAnotherEventOfTheSameID(t *testing.T) {
	onEach(t, func(t *testing.T, db *gorm.DB) {
		testSpared(t, db, 1, 1)
	})
}

// The same with a row that the relay gives back untried.
func TestReleaseSparesAnotherEventOfTheSameID(t *testing.T) {
	onEach(t, func(t *testing.T, db *gorm.DB) {
		testSpared(t, db, 2, 2)
	})
}

// testSpared has a relay lease the events 1 to n and fail to publish the first.
// Before it writes it to the table, the row of event lost is gone and its id is
// that of event 3, which another relay has leased.
func testSpared(t *testing.T, db *gorm.DB, n, lost int) {
	t.Helper()
	other := open(t, db, outbox.Config{})
	for i := range n {
		publish(t, other, i+1)
	}
	tried := make(chan struct{})
	var once sync.Once
	o := open(t, db, outbox.Config{Relay: notify.PublisherFunc(func(ctx context.Context, _ notify.Event) error {
		once.Do(func() {
			failOver(t, db, other, lost, 3)
			if err := db.Exec("UPDATE belay_outbox SET leased_until = 9000000000000 WHERE event_id = ?", event(3).ID).Error; err != nil {
				t.Error(err)
			}
			close(tried)
		})
		<-ctx.Done() // the relay is told to stop, and does not come to the other rows
		return ctx.Err()
	})})
	<-tried
	closeNow(o)
	var row struct {
		Attempts             int
		RetryAt, LeasedUntil int64
	}
	if err := db.Raw("SELECT attempts, retry_at, leased_until FROM belay_outbox WHERE event_id = ?", event(3).ID).Scan(&row).Error; err != nil {
		t.Fatal(err)
	}
	if row.Attempts != 0 || row.RetryAt != 0 || row.LeasedUntil != 9000000000000 {
		t.Errorf("event 3 was changed: %+v", row)
	}
}

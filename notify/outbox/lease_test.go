package outbox_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/testlog"
	"github.com/belaygo/belay/internal/testmetric"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/notify"
	"github.com/belaygo/belay/notify/outbox"
)

// Several processes relay one table to a healthy broker: no event goes twice.
func TestSeveralRelaysShareTheRows(t *testing.T) {
	onEach(t, func(t *testing.T, db *gorm.DB) {
		const n = 300
		writer := open(t, db, outbox.Config{})
		var numbers []int
		var events []notify.Event
		for i := range n {
			numbers, events = append(numbers, i), append(events, event(i))
		}
		if failed := publishTogether(t, writer, events...); failed != 0 {
			t.Fatalf("%d events failed", failed)
		}
		var relay recorder
		for range 4 {
			open(t, db, outbox.Config{Relay: &relay}.With(outbox.Limits{BatchSize: 7, PollInterval: 5 * time.Millisecond}))
		}
		testwait.Until(t, "the table is empty", func() bool { return rows(t, db) == 0 })
		for i, times := range relay.took(numbers...) {
			if times != 1 {
				t.Errorf("event %d was relayed %d times, want once", i, times)
			}
		}
	})
}

// A process dies with rows in its hands: another takes them when the lease has
// ended.
func TestRowsOfADeadRelayAreTakenOver(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db *gorm.DB) {
		var inHand atomic.Int32
		dead := notify.PublisherFunc(func(ctx context.Context, _ notify.Event) error {
			inHand.Add(1)
			<-t.Context().Done() // it never comes back, as far as the table can tell
			return errDown
		})
		first := open(t, db, outbox.Config{Relay: dead, RelayTimeout: time.Second}.With(outbox.Limits{Lease: 2 * time.Second}))
		publish(t, first, 1, 2)
		testwait.Until(t, "the rows are in its hands", func() bool { return inHand.Load() == 1 })
		var relay recorder
		open(t, db, outbox.Config{Relay: &relay}.With(outbox.Limits{PollInterval: 10 * time.Millisecond}))
		testwait.Until(t, "the other has taken over", func() bool { return relay.tookAll(1, 2) && rows(t, db) == 0 })
	})
}

// While the lease lasts, nobody else has the row.
func TestLeasedRowsAreLeftAlone(t *testing.T) {
	onEach(t, func(t *testing.T, db *gorm.DB) {
		asked := make(chan struct{}, 1)
		slow := notify.PublisherFunc(func(ctx context.Context, _ notify.Event) error {
			asked <- struct{}{}
			<-ctx.Done()
			return ctx.Err()
		})
		first := open(t, db, outbox.Config{Relay: slow, RelayTimeout: 20 * time.Minute})
		publish(t, first, 1)
		<-asked
		var relay recorder
		second := open(t, db, outbox.Config{Relay: &relay}.With(outbox.Limits{PollInterval: time.Millisecond}))
		if err := second.Close(t.Context()); err != nil { // it sweeps the table, and finds nothing
			t.Error(err)
		}
		if relay.asked() != 0 || rows(t, db) != 1 {
			t.Errorf("the second relay published %d times, %d rows are left", relay.asked(), rows(t, db))
		}
		closeNow(first)
		third := open(t, db, outbox.Config{Relay: &relay})
		if err := third.Close(t.Context()); err != nil || !relay.tookAll(1) {
			t.Errorf("not given back at the end: %v", err)
		}
	})
}

func TestSecondCloseStillTellsOfRowsThatAreLeft(t *testing.T) {
	onEach(t, func(t *testing.T, db *gorm.DB) {
		var relay recorder
		relay.failWith(down)
		o := open(t, db, outbox.Config{Relay: &relay})
		publish(t, o, 1)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if err := o.Close(ctx); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, outbox.ErrNotDrained) {
			t.Errorf("err = %v, want DeadlineExceeded and ErrNotDrained", err)
		}
		if err := o.Close(t.Context()); !errors.Is(err, outbox.ErrNotDrained) {
			t.Errorf("the second Close: err = %v, want ErrNotDrained", err)
		}
		if n := rows(t, db); n != 1 {
			t.Errorf("%d rows, want 1", n)
		}
	})
}

// A row that is no event is read once, and by one process.
func TestUnreadableRowIsParked(t *testing.T) {
	onEach(t, func(t *testing.T, db *gorm.DB) {
		if err := db.Exec("INSERT INTO belay_outbox (event_id, body) VALUES ('bad', 'no event')").Error; err != nil {
			t.Fatal(err)
		}
		var log testlog.Buffer
		cfg := outbox.Config{Relay: &recorder{}, Logger: slog.New(slog.NewTextHandler(&log, nil))}.With(outbox.Limits{PollInterval: time.Millisecond})
		first := open(t, db, cfg)
		testwait.Until(t, "it is told", func() bool { return strings.Contains(log.String(), "no event") })
		second := open(t, db, cfg)
		for _, o := range []*outbox.Outbox{first, second} {
			if err := o.Close(t.Context()); err != nil {
				t.Error(err)
			}
		}
		if n := strings.Count(log.String(), "stored row is no event"); n != 1 {
			t.Errorf("told %d times, want once:\n%s", n, log.String())
		}
		metrics(t, second, `belay_outbox_unreadable_total{name="outbox"} 0`)

		// A person has looked at it.
		if err := db.Exec("UPDATE belay_outbox SET retry_at = 0").Error; err != nil {
			t.Fatal(err)
		}
		third := open(t, db, cfg)
		if err := third.Close(t.Context()); err != nil {
			t.Error(err)
		}
		metrics(t, third, `belay_outbox_unreadable_total{name="outbox"} 1`)
		if n := strings.Count(log.String(), "stored row is no event"); n != 1 {
			t.Errorf("told %d times, want once:\n%s", n, log.String())
		}
	})
}

// What an older version could not read is an event to a newer one, an hour later.
func TestUnreadableRowIsReadLater(t *testing.T) {
	onEach(t, func(t *testing.T, db *gorm.DB) {
		publish(t, open(t, db, outbox.Config{}), 1)
		change := func(statement string) {
			t.Helper()
			if err := db.Exec(statement).Error; err != nil {
				t.Fatal(err)
			}
		}
		change(`UPDATE belay_outbox SET body = REPLACE(body, '"overlap"', '"news"')`)
		var relay recorder
		o := open(t, db, outbox.Config{Relay: &relay}.With(outbox.Limits{PollInterval: time.Millisecond}))
		testwait.Until(t, "it is set aside", func() bool {
			return testmetric.Sum(t, o, "belay_outbox_unreadable_total") == 1
		})
		change(`UPDATE belay_outbox SET body = REPLACE(body, '"news"', '"overlap"'), retry_at = retry_at - 3600000`)
		testwait.Until(t, "it is relayed", func() bool { return relay.tookAll(1) })
	})
}

// The database's clock was set back: rows do not wait until it is where it was.
func TestClockSetBack(t *testing.T) {
	onEach(t, func(t *testing.T, db *gorm.DB) {
		publish(t, open(t, db, outbox.Config{}), 1, 2)
		for n, column := range []string{"retry_at", "leased_until"} {
			if err := db.Exec("UPDATE belay_outbox SET "+column+" = 9000000000000 WHERE event_id = ?", event(n+1).ID).Error; err != nil {
				t.Fatal(err)
			}
		}
		var relay recorder
		open(t, db, outbox.Config{Relay: &relay})
		testwait.Until(t, "the rows are relayed", func() bool { return relay.tookAll(1, 2) })
	})
}

// The table cannot be written after the broker has confirmed: the relay does not
// publish the event again, it goes on trying to delete the row.
func TestConfirmedEventIsNotPublishedAgain(t *testing.T) {
	db := openSQLite(t)
	if err := db.Exec("CREATE TRIGGER keep BEFORE DELETE ON belay_outbox BEGIN SELECT RAISE(ABORT, 'read only'); END").Error; err != nil {
		t.Fatal(err)
	}
	var log testlog.Buffer
	var relay recorder
	o := open(t, db, outbox.Config{
		Relay: &relay, RelayTimeout: 100 * time.Millisecond,
		Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})), // each failure
	}.With(outbox.Limits{PollInterval: time.Millisecond}))
	publish(t, o, 1, 2)
	testwait.Until(t, "deleting has failed again and again", func() bool {
		return strings.Count(log.String(), "delete published events") >= 3
	})
	if err := db.Exec("DROP TRIGGER keep").Error; err != nil {
		t.Fatal(err)
	}
	testwait.Until(t, "the table is empty", func() bool { return rows(t, db) == 0 })
	for i, times := range relay.took(1, 2) {
		if times != 1 {
			t.Errorf("event %d was relayed %d times, want once", i+1, times)
		}
	}
}

// A relay that could not give its rows back, or does not know whether it has
// any, does not call the table drained before their lease has ended.
func TestCloseWaitsForTheLeasesOfItsOwn(t *testing.T) {
	t.Parallel()
	db := openSQLite(t)
	if err := db.Exec(`CREATE TRIGGER keep BEFORE UPDATE ON belay_outbox WHEN NEW.leased_until = 0
		BEGIN SELECT RAISE(ABORT, 'read only'); END`).Error; err != nil {
		t.Fatal(err)
	}
	var log testlog.Buffer
	var relay recorder
	relay.failWith(down)
	o := open(t, db, outbox.Config{
		Relay: &relay, RelayTimeout: time.Second,
		Logger: slog.New(slog.NewTextHandler(&log, nil)),
	}.With(outbox.Limits{PollInterval: time.Millisecond}))
	publish(t, o, 1)
	testwait.Until(t, "giving back has failed", func() bool { return strings.Contains(log.String(), "postpone event") })
	if err := db.Exec("DROP TRIGGER keep").Error; err != nil {
		t.Fatal(err)
	}
	relay.failWith(nil)
	if err := o.Close(t.Context()); err != nil || !relay.tookAll(1) || rows(t, db) != 0 {
		t.Errorf("Close returned %v, %d rows are left", err, rows(t, db))
	}
}

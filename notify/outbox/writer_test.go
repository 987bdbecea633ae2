package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/testlog"
	"github.com/belaygo/belay/internal/testmetric"
	"github.com/belaygo/belay/notify"
	"github.com/belaygo/belay/notify/outbox"
)

// publishTogether publishes events so that they gather: the delay is as long as
// the test likes, and ends when as many came as fit into one INSERT, or else by
// time.
func publishTogether(t *testing.T, o *outbox.Outbox, events ...notify.Event) (failed int) {
	t.Helper()
	var publishers sync.WaitGroup
	var mu sync.Mutex
	for _, ev := range events {
		publishers.Go(func() {
			if err := o.Publish(t.Context(), ev); err != nil {
				mu.Lock()
				defer mu.Unlock()
				failed++
			}
		})
	}
	publishers.Wait()
	return failed
}

func TestEventsShareAnInsert(t *testing.T) {
	onEach(t, func(t *testing.T, db *gorm.DB) {
		o := open(t, db, outbox.Config{}.With(outbox.Limits{GatherDelay: time.Hour}))
		var events []notify.Event
		for n := range 500 {
			events = append(events, event(n))
		}
		if failed := publishTogether(t, o, events...); failed != 0 {
			t.Fatalf("%d events failed", failed)
		}
		if n := rows(t, db); n != 500 {
			t.Errorf("%d rows, want 500", n)
		}
		metrics(t, o, `
			belay_outbox_stored_total{name="outbox"} 500
			belay_outbox_inserts_total{name="outbox"} 1`)
	})
}

// Events of one key that come at once are stored one by one, under the ids that
// their callers know. An event that comes twice has one row.
func TestEventsOfABurstKeepTheirIDs(t *testing.T) {
	onEach(t, func(t *testing.T, db *gorm.DB) {
		o := open(t, db, outbox.Config{}.With(outbox.Limits{GatherDelay: 200 * time.Millisecond}))
		const burst = 50
		var events []notify.Event
		for n := range burst {
			ev := event(n)
			ev.Key, ev.Count = "sku:hot", n+1
			events = append(events, ev)
		}
		if failed := publishTogether(t, o, append(events, events[0])...); failed != 0 {
			t.Fatalf("%d events failed", failed)
		}
		counts := map[string]int{}
		for _, ev := range stored(t, db) {
			counts[ev.ID] = ev.Count
		}
		for n, ev := range events {
			if counts[ev.ID] != n+1 {
				t.Errorf("event %s has count %d in the table, want %d", ev.ID, counts[ev.ID], n+1)
			}
		}
		if n := rows(t, db); n != burst {
			t.Errorf("%d rows, want %d", n, burst)
		}
	})
}

// Ten thousand callers see one key fail within a second. Each event is stored under
// its own id: none is lost, and none is published past the table. The limit is far
// above what it takes, for machines that are busy.
func TestBurstOfOneKeyIsStoredWhole(t *testing.T) {
	db := benchmarkDB(t)
	var relay recorder
	relay.failWith(down)
	o := open(t, db, outbox.Config{Relay: &relay, Logger: slog.New(slog.DiscardHandler)}.With(outbox.Limits{WriteTimeout: time.Minute}))
	const burst = 10_000
	var publishers sync.WaitGroup
	var failed atomic.Int64
	waits := make([]time.Duration, burst)
	began := time.Now()
	for n := range burst {
		publishers.Go(func() {
			ev := event(n)
			ev.Key = "sku:hot"
			<-time.After(rand.N(time.Second))
			asked := time.Now()
			if o.Publish(t.Context(), ev) != nil {
				failed.Add(1)
			}
			waits[n] = time.Since(asked)
		})
	}
	publishers.Wait()
	slices.Sort(waits)
	t.Logf("%s: %d events in %v: waits: median %v, 99%% %v, longest %v; %v INSERTs", db.Name(), burst, time.Since(began),
		waits[burst/2], waits[burst*99/100], waits[burst-1], testmetric.Sum(t, o, "belay_outbox_inserts_total"))
	metrics(t, o, fmt.Sprintf(`
		belay_outbox_stored_total{name="outbox"} %d
		belay_outbox_direct_total{name="outbox"} 0
		belay_outbox_lost_total{name="outbox"} 0`, burst))
	ids := map[string]bool{}
	for _, ev := range stored(t, db) {
		ids[ev.ID] = true
	}
	for n := range burst {
		if !ids[event(n).ID] {
			t.Fatalf("event %d is not in the table, which has %d; %d callers got an error", n, len(ids), failed.Load())
		}
	}
}

// stored returns the events in the table.
func stored(t *testing.T, db *gorm.DB) (events []notify.Event) {
	t.Helper()
	var bodies []string
	if err := db.Raw("SELECT body FROM belay_outbox ORDER BY id").Scan(&bodies).Error; err != nil {
		t.Fatal(err)
	}
	for _, body := range bodies {
		var ev notify.Event
		if err := ev.UnmarshalJSON([]byte(body)); err != nil {
			t.Fatal(err)
		}
		events = append(events, ev)
	}
	return events
}

// The database refuses one event: the others that came with it are stored.
func TestRefusedEventDoesNotTakeOthersWithIt(t *testing.T) {
	db := openSQLite(t)
	if err := db.Exec(`CREATE TRIGGER refuse BEFORE INSERT ON belay_outbox WHEN NEW.event_id = '` + event(7).ID + `'
		BEGIN SELECT RAISE(ABORT, 'not this one'); END`).Error; err != nil {
		t.Fatal(err)
	}
	var log testlog.Buffer
	o := open(t, db, outbox.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))}.With(outbox.Limits{GatherDelay: 200 * time.Millisecond}))
	var events []notify.Event
	for n := range 20 {
		events = append(events, event(n))
	}
	if failed := publishTogether(t, o, events...); failed != 1 {
		t.Errorf("%d events failed, want 1", failed)
	}
	if n := rows(t, db); n != 19 {
		t.Errorf("%d rows, want 19", n)
	}
	if !strings.Contains(log.String(), event(7).ID) || strings.Contains(log.String(), event(8).ID) {
		t.Errorf("the log lacks the lost event, or has others: %s", log.String())
	}
	metrics(t, o, `
		belay_outbox_stored_total{name="outbox"} 19
		belay_outbox_lost_total{name="outbox"} 1`)
}

// Large events do not end up in one statement that is too large for the server.
func TestLargeEventsAreSpread(t *testing.T) {
	onEach(t, func(t *testing.T, db *gorm.DB) {
		o := open(t, db, outbox.Config{}.With(outbox.Limits{GatherDelay: 300 * time.Millisecond, WriteTimeout: time.Minute}))
		var events []notify.Event
		for n := range 30 {
			ev := event(n)
			ev.Index = []string{strings.Repeat("c", 400<<10)}
			events = append(events, ev)
		}
		if failed := publishTogether(t, o, events...); failed != 0 || rows(t, db) != 30 {
			t.Errorf("%d failed, %d rows, want none and 30", failed, rows(t, db))
		}
	})
}

// An outage of the table must not let callers wait one after the other.
func TestManyCallersDuringAnOutageShareTheLimit(t *testing.T) {
	t.Parallel()
	db := openSQLite(t)
	pool, err := db.DB()
	if err != nil {
		t.Fatal(err)
	}
	blocker, err := pool.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer blocker.Close()
	if _, err := blocker.ExecContext(t.Context(), "BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	var relay recorder
	o := open(t, db, outbox.Config{Relay: &relay}.With(outbox.Limits{WriteTimeout: 9 * time.Second, PollInterval: time.Hour}))
	var events []notify.Event
	var numbers []int
	for n := range 1200 { // more than fit into two INSERTs
		events, numbers = append(events, event(n)), append(numbers, n)
	}
	if failed := publishTogether(t, o, events...); failed != 0 {
		t.Errorf("%d events failed", failed)
	}
	if !relay.tookAll(numbers...) {
		t.Error("not all were published directly")
	}
	if _, err := blocker.ExecContext(context.WithoutCancel(t.Context()), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
}

// BenchmarkPublish stores a burst of events of many keys: callers at a time, and
// how many INSERTs an event costs.
func BenchmarkPublish(b *testing.B) {
	for _, callers := range []int{1, 8, 64, 512} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			db := benchmarkDB(b)
			o, err := outbox.New(db, outbox.Config{})
			if err != nil {
				b.Fatal(err)
			}
			defer o.Close(context.Background())
			numbers := make(chan int)
			var publishers sync.WaitGroup
			for range callers {
				publishers.Go(func() {
					for n := range numbers {
						if err := o.Publish(b.Context(), event(n)); err != nil {
							b.Error(err)
						}
					}
				})
			}
			b.ResetTimer()
			for n := range b.N {
				numbers <- n
			}
			close(numbers)
			publishers.Wait()
			b.StopTimer()
			b.ReportMetric(testmetric.Sum(b, o, "belay_outbox_inserts_total")/float64(b.N), "inserts/event")
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
		})
	}
}

func TestPublishWithoutTimeToWait(t *testing.T) {
	onEach(t, func(t *testing.T, db *gorm.DB) {
		o := open(t, db, outbox.Config{}.With(outbox.Limits{WriteTimeout: time.Nanosecond}))
		if err := o.Publish(t.Context(), event(1)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("err = %v, want DeadlineExceeded", err)
		}
	})
}

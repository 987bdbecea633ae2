package outbox

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gorm.io/driver/sqlite"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
	_ "modernc.org/sqlite"

	"github.com/belaygo/belay/internal/sqldb"
	"github.com/belaygo/belay/notify"
)

func newPool(t *testing.T) *sql.DB {
	t.Helper()
	pool, err := sql.Open("sqlite", filepath.Join(t.TempDir(), "outbox.db"))
	if err != nil {
		t.Fatal(err)
	}
	return pool
}

// closedPool returns a pool whose every statement fails.
func closedPool(t *testing.T) *sql.DB {
	t.Helper()
	pool := newPool(t)
	if err := pool.Close(); err != nil {
		t.Fatal(err)
	}
	return pool
}

// stoppedRelay returns a relay whose goroutine does not run, on an empty table.
func stoppedRelay(t *testing.T, to notify.Publisher) *relay {
	t.Helper()
	pool := newPool(t)
	t.Cleanup(func() { pool.Close() })
	db, err := gorm.Open(sqlite.New(sqlite.Config{Conn: pool}), &gorm.Config{Logger: logger.Discard})
	if err != nil {
		t.Fatal(err)
	}
	if err := Migrate(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	table, err := openTable(db)
	if err != nil {
		t.Fatal(err)
	}
	return newRelay(t.Context(), Config{Relay: to}.withDefaults(), table, newMetrics("relay", table))
}

func anEvent(t *testing.T, id string) []byte {
	t.Helper()
	body, err := encode(notify.Event{
		ID: id, Service: "s", Verdict: notify.VerdictOverlap, Outcome: notify.OutcomeRefused, CaughtAt: time.Now(), Count: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// longestPause returns the longest of many pauses, which shows how far the
// backoff has come: a pause is anything up to its bound.
func longestPause(r *relay) (longest time.Duration) {
	for range 100 {
		b := *r.pacer.pause()
		longest = max(longest, b.Next())
	}
	return longest
}

// The table fails for a while, three times, and is polled with success in between.
// What is over does not lengthen the pauses of the next outage. Neither do publishes
// that failed before and whose rows another relay has taken.
func TestOutagesOfTheTableDoNotAddUp(t *testing.T) {
	for _, failures := range []int{0, 1, 2} {
		t.Run(fmt.Sprint(failures), func(t *testing.T) {
			r := stoppedRelay(t, notify.PublisherFunc(func(context.Context, notify.Event) error { return nil }))
			r.failures = failures
			works, fails := r.table, r.table
			fails.db = sqldb.New(closedPool(t), fails.db.Dialect)
			for outage := range 3 {
				r.table = fails
				for poll := range 10 {
					if _, err := r.pass(t.Context()); err == nil {
						t.Fatal("no error of a table that fails")
					}
					if d := longestPause(r); poll == 0 && d > minPause || poll == 9 && d <= minPause {
						t.Errorf("outage %d: the pause after poll %d can be %v; the shortest bound is %v", outage, poll, d, minPause)
					}
					r.pacer.pause().Next()
				}
				r.table = works
				if _, err := r.pass(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// A lease says nothing about a publisher that fails: the relay backs off.
func TestPauseGrowsWhileThePublisherFails(t *testing.T) {
	r := stoppedRelay(t, notify.PublisherFunc(func(context.Context, notify.Event) error { return errors.New("down") }))
	for n := range 4 {
		id := string(rune('a' + n))
		if err := r.table.insert(t.Context(), row{eventID: id, body: anEvent(t, id)}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.pass(t.Context()); err == nil {
		t.Fatal("no error of a publisher that fails twice")
	}
	for range 10 {
		r.pacer.pause().Next()
	}
	if _, err := r.pass(t.Context()); err == nil {
		t.Fatal("no error of a publisher that goes on failing")
	}
	if d := longestPause(r); d <= minPause {
		t.Errorf("the next pause is at most %v, want more than %v", d, minPause)
	}
}

// A publisher ignores the end of its context. The relay can only wait for it, and
// says so.
func TestPublisherThatDoesNotReturnIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		r := &relay{cfg: Config{
			Relay: notify.PublisherFunc(func(context.Context, notify.Event) error {
				<-time.After(time.Hour)
				return nil
			}),
			Logger: slog.New(slog.NewTextHandler(&log, nil)),
		}.withDefaults()}
		if err := r.publish(t.Context(), anEvent(t, "a")); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if n := strings.Count(log.String(), "events are not relayed"); n != 1 {
			t.Errorf("logged %d times, want once:\n%s", n, log.String())
		}
	})
}

// A publisher that ends with its context is not logged.
func TestPublisherThatTimesOutIsNotLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		r := &relay{cfg: Config{
			Relay: notify.PublisherFunc(func(ctx context.Context, _ notify.Event) error {
				<-ctx.Done()
				return ctx.Err()
			}),
			Logger: slog.New(slog.NewTextHandler(&log, nil)),
		}.withDefaults()}
		if err := r.publish(t.Context(), anEvent(t, "a")); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		<-time.After(time.Hour)
		synctest.Wait()
		if log.Len() > 0 {
			t.Errorf("logged: %s", log.String())
		}
	})
}

// busy is the error of a publisher whose destination asks for a pause.
type busy time.Duration

func (busy) Error() string               { return "busy" }
func (b busy) RetryAfter() time.Duration { return time.Duration(b) }

// A destination that asks for a pause is not asked for the next event, and gets that
// pause: events that are stored meanwhile do not cut it short.
func TestRelayPausesAsAsked(t *testing.T) {
	asked := 0
	r := stoppedRelay(t, notify.PublisherFunc(func(context.Context, notify.Event) error {
		asked++
		return fmt.Errorf("publish: %w", busy(20*time.Second))
	}))
	for _, id := range []string{"a", "b", "c"} {
		if err := r.table.insert(t.Context(), row{eventID: id, body: anEvent(t, id)}); err != nil {
			t.Fatal(err)
		}
	}
	_, failed := r.pass(t.Context())
	if failed == nil || asked != 1 {
		t.Fatalf("the destination was asked %d times, err = %v; want one event and an error", asked, failed)
	}
	if n, err := r.table.count(t.Context()); n != 3 || err != nil {
		t.Errorf("%d rows are kept, %v, want 3", n, err)
	}
	for _, c := range []struct {
		err   error
		drain bool
		least time.Duration
		most  time.Duration
	}{
		{failed, false, 20 * time.Second, 20 * time.Second},
		{busy(time.Hour), false, maxAskedPause, maxAskedPause},
		{busy(time.Hour), true, 0, maxDrainPause},
		{busy(-time.Hour), false, 0, minPause},
		{errors.New("no pause is asked for"), false, 0, minPause},
	} {
		synctest.Test(t, func(t *testing.T) {
			cfg := Config{Logger: slog.New(slog.DiscardHandler)}.withDefaults()
			p := newPacer(t.Context(), cfg, newHeart(cfg, table{}, nil))
			p.wake()
			if c.drain {
				p.drain()
			}
			began := time.Now()
			p.rest(t.Context(), c.err)
			if d := time.Since(began); d < c.least || d > c.most {
				t.Errorf("%v, draining %t: the pause is %v, want %v to %v", c.err, c.drain, d, c.least, c.most)
			}
			p.drain()
		})
	}
}

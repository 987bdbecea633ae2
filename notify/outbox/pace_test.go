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

	"github.com/belaygo/belay/notify"
	"github.com/belaygo/belay/notify/internal/backoff"
)

// newRelay returns a relay whose goroutine does not run, on an empty table.
func newRelay(t *testing.T, to notify.Publisher) *relay {
	t.Helper()
	pool, err := sql.Open("sqlite", filepath.Join(t.TempDir(), "outbox.db"))
	if err != nil {
		t.Fatal(err)
	}
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
	return &relay{
		cfg: Config{Relay: to}.withDefaults(), table: table, metrics: newMetrics("relay"),
		pause: backoff.Backoff{Min: minPause, Max: maxPause},
	}
}

// longestPause returns the longest of many pauses, which shows how far the
// backoff has come: a pause is anything up to its bound.
func longestPause(r *relay) (longest time.Duration) {
	for range 100 {
		b := r.pause
		longest = max(longest, b.Next())
	}
	return longest
}

// Outages of the table that are over do not lengthen the pause of the next one.
// Neither does one publish that failed before.
func TestPauseStartsAnewAfterALease(t *testing.T) {
	for _, failures := range []int{0, 1} {
		t.Run(fmt.Sprint(failures), func(t *testing.T) {
			r := newRelay(t, notify.PublisherFunc(func(context.Context, notify.Event) error { return nil }))
			r.failures = failures
			for range 10 { // an outage
				r.pause.Next()
			}
			if _, err := r.pass(t.Context()); err != nil {
				t.Fatal(err)
			}
			if d := longestPause(r); d > minPause {
				t.Errorf("the next pause can be %v, want at most %v", d, minPause)
			}
		})
	}
}

// A lease says nothing about a publisher that fails: the relay backs off.
func TestPauseGrowsWhileThePublisherFails(t *testing.T) {
	r := newRelay(t, notify.PublisherFunc(func(context.Context, notify.Event) error { return errors.New("down") }))
	for n := range 4 {
		e := &entry{event: notify.Event{
			ID: string(rune('a' + n)), Service: "s", Verdict: notify.Overlap, Outcome: notify.Refused,
			Key: "k", CaughtAt: time.Now(), Count: 1,
		}}
		body, err := encode(e.event)
		if err != nil {
			t.Fatal(err)
		}
		e.body = body
		if err := r.table.insert(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.pass(t.Context()); err == nil {
		t.Fatal("no error of a publisher that fails twice")
	}
	for range 10 {
		r.pause.Next()
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
		if err := r.publish(t.Context(), notify.Event{}); err != nil {
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
		if err := r.publish(t.Context(), notify.Event{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		<-time.After(time.Hour)
		synctest.Wait()
		if log.Len() > 0 {
			t.Errorf("logged: %s", log.String())
		}
	})
}

package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"gorm.io/gorm"
	_ "modernc.org/sqlite"

	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/notify"
	"github.com/belaygo/belay/notify/outbox"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// GORM's cache of prepared statements has a goroutine that never ends.
		goleak.IgnoreTopFunction("gorm.io/gorm/internal/lru.NewLRU[...].func1"))
}

var errDown = errors.New("the broker is down")

// onEach runs test on an empty database of each kind.
func onEach(t *testing.T, test func(t *testing.T, db *gorm.DB)) {
	testdb.EachWithPostgres(t, func(t *testing.T, connect func(opts ...gorm.Option) *gorm.DB) {
		test(t, migrated(t, connect()))
	})
}

func openSQLite(tb testing.TB) *gorm.DB {
	tb.Helper()
	return migrated(tb, testdb.OpenSQLite(tb, filepath.Join(tb.TempDir(), "outbox.db")))
}

func migrated(tb testing.TB, db *gorm.DB) *gorm.DB {
	tb.Helper()
	if err := outbox.Migrate(tb.Context(), db); err != nil {
		tb.Fatal(err)
	}
	return db
}

// open returns an outbox that is closed, without draining, when the test ends.
func open(t *testing.T, db *gorm.DB, cfg outbox.Config) *outbox.Outbox {
	t.Helper()
	o, err := outbox.New(db, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeNow(o) })
	return o
}

// closeNow stops an outbox as the end of a process does: nothing is drained.
func closeNow(o *outbox.Outbox) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	o.Close(ctx)
}

func event(n int) notify.Event {
	return notify.Event{
		ID:       fmt.Sprintf("0199a1b2-0000-7000-8000-%012d", n),
		Service:  "orders",
		Verdict:  notify.VerdictOverlap,
		Outcome:  notify.OutcomeRefused,
		Key:      "order:中国 🧗 \x1b" + fmt.Sprint(n),
		CaughtAt: time.Date(2026, 11, 21, 9, 30, 7, 0, time.UTC),
		Count:    1,
	}
}

func publish(t *testing.T, o *outbox.Outbox, events ...int) {
	t.Helper()
	for _, n := range events {
		if err := o.Publish(t.Context(), event(n)); err != nil {
			t.Fatal(err)
		}
	}
}

// A recorder is a publisher that keeps what it was given and fails on demand.
type recorder struct {
	mu   sync.Mutex
	keys []string // of the events it took
	asks int
	fail func(notify.Event) error
}

func (r *recorder) Publish(ctx context.Context, ev notify.Event) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asks++
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if r.fail != nil {
		if err := r.fail(ev); err != nil {
			return err
		}
	}
	r.keys = append(r.keys, ev.Key)
	return nil
}

func (r *recorder) failWith(fail func(notify.Event) error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fail = fail
}

func (r *recorder) asked() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.asks
}

// took reports how often the recorder took each of the events.
func (r *recorder) took(events ...int) []int {
	r.mu.Lock()
	defer r.mu.Unlock()
	times := make([]int, len(events))
	for i, n := range events {
		for _, key := range r.keys {
			if key == event(n).Key {
				times[i]++
			}
		}
	}
	return times
}

func (r *recorder) tookAll(events ...int) bool { return !slices.Contains(r.took(events...), 0) }

func down(notify.Event) error { return errDown }

// benchmarkDB is MariaDB where there is a stack, and else SQLite.
func benchmarkDB(b testing.TB) *gorm.DB {
	b.Helper()
	if os.Getenv("BELAY_MYSQL_DSN") == "" {
		return openSQLite(b)
	}
	return migrated(b, testdb.OpenMySQL(b, teststack.MySQL(b)))
}

func rows(t *testing.T, db *gorm.DB) (n int) {
	t.Helper()
	if err := db.Raw("SELECT COUNT(*) FROM belay_outbox").Scan(&n).Error; err != nil {
		t.Fatal(err)
	}
	return n
}

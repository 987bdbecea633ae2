package sqllock_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/belaygo/belay/internal/testlog"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/lock/memlock"
	"github.com/belaygo/belay/lock/sqllock"
	"github.com/belaygo/belay/lock/switchlock"
)

// TestRecordIsRestored: the database gets an older record from a backup, which names another engine.
// A process that knows the newer one writes it again and logs an error. Processes that begin with the
// older record follow, and tokens go on growing.
func TestRecordIsRestored(t *testing.T) {
	each(t, func(t *testing.T, dsn string) {
		t.Parallel()
		pool, d := openPool(t, dsn)
		engines := map[string]lockengine.Engine{"a": memlock.New(), "b": memlock.New()}
		var log testlog.Buffer
		begin := func() switchlock.Engine {
			s, err := sqllock.NewSource(pool, d, "orders")
			if err != nil {
				t.Fatal(err)
			}
			e, err := switchlock.New(switchlock.Config{
				Source: s, Engines: engines, First: "a", Lease: 500 * time.Millisecond, TTL: 500 * time.Millisecond,
				Logger: slog.New(slog.NewTextHandler(&log, nil)),
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = e.Close(context.Background()) })
			return e
		}
		settledIn := func(e switchlock.Engine, name string, epoch int64) {
			t.Helper()
			testwait.Until(t, "locks are in "+name, func() bool {
				s := e.State()
				return s.To == name && s.Settled && s.Epoch >= epoch
			})
		}
		e := begin()
		settledIn(e, "a", 1)
		execute(t, pool, "CREATE TABLE saved AS SELECT * FROM belay_switch")
		if _, err := e.To(t.Context(), switchlock.Change{To: "b"}); err != nil {
			t.Fatal(err)
		}
		settledIn(e, "b", 2)
		before := tokenOf(t, e, mine)

		execute(t, pool, `UPDATE belay_switch SET epoch = (SELECT epoch FROM saved), from_engine = (SELECT from_engine FROM saved),
			to_engine = (SELECT to_engine FROM saved), settled = (SELECT settled FROM saved), base = (SELECT base FROM saved)`)
		late := begin()
		settledIn(e, "b", 3)
		settledIn(late, "b", 3)
		if !strings.Contains(log.String(), "the source has lost a record; locks may have two holders for a while") {
			t.Errorf("logged:\n%s", log.String())
		}
		if after := tokenOf(t, late, theirs); after <= before {
			t.Errorf("token %d after %d", after, before)
		}
	})
}

// tokenOf acquires a lock, which expires.
func tokenOf(t *testing.T, e lockengine.Engine, r lockengine.Request) (token int64) {
	t.Helper()
	testwait.Until(t, "a lock is granted", func() bool {
		g, err := e.Acquire(t.Context(), r, 500*time.Millisecond)
		token = g.Token
		return err == nil
	})
	return token
}

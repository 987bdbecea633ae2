package sqllock_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/lock/sqllock"
)

// A marker that has ended, and whose row is still there, is set again.
func TestMarkAgain(t *testing.T) {
	each(t, func(t *testing.T, dsn string) {
		e := open(t, dsn)
		for _, mark := range []time.Duration{time.Microsecond, time.Minute} {
			r := mine
			r.UnlessMarked = true
			testwait.Until(t, "the marker has ended", func() bool {
				_, err := e.Acquire(t.Context(), r, ttl)
				return err == nil
			})
			r.Mark = mark
			release(t, e, r)
		}
		again := theirs
		again.UnlessMarked = true
		_, err := e.Acquire(t.Context(), again, ttl)
		wantIs(t, err, lockengine.ErrMarked)
		if h, err := e.Inspect(t.Context(), again.Key); err != nil || h.Owner != "" {
			t.Errorf("what was acquired in vain is held: %+v, %v", h, err)
		}
	})
}

// A release wakes the waiters of this process without a look at the table. A release that failed
// wakes none, and nor does a quiet one.
func TestReleaseWakes(t *testing.T) {
	each(t, func(t *testing.T, dsn string) {
		e := open(t, dsn, sqllock.Config{PollFrom: time.Hour})
		acquire(t, e, mine, ttl)
		woken := make(chan struct{}, 10)
		stop, err := e.Watch(t.Context(), mine.Key, func() { woken <- struct{}{} })
		if err != nil {
			t.Fatal(err)
		}
		defer stop()
		wantIs(t, e.Release(t.Context(), theirs), lockengine.ErrNotHeld)
		if len(woken) != 0 {
			t.Error("woken by a release of another owner")
		}
		quiet := mine
		quiet.Quiet = true
		release(t, e, quiet)
		if len(woken) != 0 {
			t.Error("woken by a quiet release")
		}
		acquire(t, e, mine, ttl)
		release(t, e, mine)
		if len(woken) != 1 {
			t.Errorf("woken %d times by the release", len(woken))
		}
	})
}

// A lock is its owner's: nobody else renews or releases it.
func TestOthersLock(t *testing.T) {
	each(t, func(t *testing.T, dsn string) {
		e := open(t, dsn)
		acquire(t, e, mine, ttl)
		for _, owner := range []string{"a:1", "z:1", "ME:1", "me:10"} {
			r := lockengine.Request{Key: mine.Key, Owner: owner}
			wantIs(t, e.Renew(t.Context(), []lockengine.Request{r}, ttl)[0], lockengine.ErrNotHeld)
			wantIs(t, e.Release(t.Context(), r), lockengine.ErrNotHeld)
		}
		release(t, e, mine)
	})
}

// More rows than one statement deletes are swept, and no other.
func TestSweepMany(t *testing.T) {
	each(t, func(t *testing.T, dsn string) {
		pool, d := openPool(t, dsn)
		e := open(t, dsn)
		acquire(t, e, mine, ttl)
		name := "'old%d'"
		if d == sqllock.SQLite { // a text is no name
			name = "CAST('old%d' AS BLOB)"
		}
		values := ""
		for i := range 1500 {
			values += fmt.Sprintf(", ("+name+", '', 1, 1)", i)
		}
		execute(t, pool, "INSERT INTO belay_lock (name, owner, token, until_us) VALUES "+values[2:])
		if err := sqllock.Sweep(t.Context(), e, time.Minute); err != nil {
			t.Fatal(err)
		}
		if n := rows(t, pool, "belay_lock"); n != 1 {
			t.Errorf("%d rows are left, want the one that is held", n)
		}
	})
}

// Package guardtest tests programs that use a guard.Guard without servers: on a new SQLite
// database or one of the caller's own, with locks in memory and events in a list.
//
//	g := guardtest.Open(t, sqlite.Open, &Order{})
//	if err := place(t.Context(), g.Guard, "1"); err != nil {
//		t.Error(err)
//	}
package guardtest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/internal/dbtx/catalogue"
	"github.com/belaygo/belay/internal/message"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/lock/memlock"
	"github.com/belaygo/belay/notify"
	"github.com/belaygo/belay/once"
)

// Guard is a guard.Guard with locks that a test can lose.
type Guard struct {
	*guard.Guard
	DB     *gorm.DB // the database, to look at
	Events Recorder // keeps what was published

	locks *engine
}

// New returns a Guard on db for the service "test". It creates the tables of packages once and
// relay in db, if they are missing, and logs it if it can't. The Guard is closed when the test ends; db stays the caller's to
// close.
func New(tb testing.TB, db *gorm.DB) *Guard {
	tb.Helper()
	if !catalogue.Has(tb.Context(), db, "belay_answer") { // the second of the two
		if err := once.Migrate(tb.Context(), db); err != nil { // a test without requests needs none
			tb.Logf("guardtest: %v", err)
		}
	}
	createMessages(tb, db)
	g := &Guard{DB: db, locks: &engine{Engine: memlock.New()}}
	g.Guard = g.Peer(tb, db)
	return g
}

// createMessages creates the tables of messages. A test without messages needs none.
func createMessages(tb testing.TB, db *gorm.DB) {
	tb.Helper()
	if catalogue.Has(tb.Context(), db, "belay_parked") { // the last of them
		return
	}
	in, err := message.Open(db, "guardtest")
	if err == nil {
		err = message.Migrate(tb.Context(), in)
	}
	if err != nil {
		tb.Logf("guardtest: %v", err)
	}
}

// Forget loses the lock on key, as a Redis master does that dies before its
// replica has it. Its holder is not notified, and another instance can acquire it: see
// Peer. Forget reports whether the key was locked.
func (g *Guard) Forget(key string) bool { return g.locks.forget(key) }

// LoseAll loses every lock as soon as it is acquired, until LoseAll(false) is called. All
// instances then run at once, each as if it held the key, and only the database stands
// between them. Callers of one instance still queue, so use several: see Peer. What an
// operation writes must be right all the same; if it is not, the database does not guard
// it. SQLite begins no write before the last one has ended: such a test proves most on
// the database that the service runs on.
func (g *Guard) LoseAll(all bool) { g.locks.lose(all) }

// Engine returns the engine that the locks are kept in, for a Locker of the
// test's own.
func (g *Guard) Engine() lockengine.Engine { return g.locks }

// Peer returns another instance of the same service: it has the same locks and
// events, and db, which may be another pool on the same database.
func (g *Guard) Peer(tb testing.TB, db *gorm.DB) *guard.Guard {
	tb.Helper()
	locker, err := lock.New(g.locks, lock.Config{})
	if err != nil {
		tb.Fatal(err)
	}
	peer, err := guard.New(db, locker, guard.Config{Service: "test", Publisher: &g.Events})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := errors.Join(peer.Close(ctx), locker.Close(ctx)); err != nil {
			tb.Errorf("close guard: %v", err)
		}
	})
	return peer
}

// Recorder is a notify.Publisher that keeps events. The zero value is empty. It
// is safe for concurrent use.
type Recorder struct {
	mu     sync.Mutex
	events []notify.Event
}

// Publish implements notify.Publisher.
func (r *Recorder) Publish(_ context.Context, ev notify.Event) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, ev)
	return nil
}

// All returns the events so far, oldest first.
func (r *Recorder) All() []notify.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.events)
}

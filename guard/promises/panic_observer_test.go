package promises_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/notify"
)

// panics returns a guard on db whose Observer panics at the end of each transaction.
func (e *env) panics(db *gorm.DB, ttl time.Duration) *guard.Guard {
	e.t.Helper()
	locker, err := lock.New(e.Engine(), lock.Config{TTL: ttl})
	wantNil(e.t, err)
	g, err := guard.New(db, locker, guard.Config{Service: "s", Publisher: &e.Events, Observer: touchy{end: guard.StepTransaction}})
	wantNil(e.t, err)
	e.t.Cleanup(func() { wantNil(e.t, errors.Join(g.Close(bg), locker.Close(bg))) })
	return g
}

// wantPanic checks that the Observer panics in f.
func (e *env) wantPanic(f func()) {
	e.t.Helper()
	defer func() {
		if r := recover(); r != "observer" {
			e.t.Errorf("recovered %v, want the Observer's panic", r)
		}
	}()
	f()
}

// TestObserverPanicsAfterAnUnknownCommit: the COMMIT may yet take effect. So it is reported, and
// nobody gets the key before the lease would have ended.
func TestObserverPanicsAfterAnUnknownCommit(t *testing.T) {
	e, k := linked(t)
	g := e.panics(e.open(), time.Second)
	k.After.Store(true)
	e.wantPanic(func() {
		_ = g.Do(bg, "order:a", func(_ context.Context, tx *gorm.DB) error {
			return tx.Create(&Order{No: "a"}).Error
		})
	})
	k.After.Store(false)
	wantIs(t, e.Do(bg, "order:a", nop), guard.ErrBusy)
	e.wantEvent(notify.VerdictUnknownCommit, notify.OutcomeUnknown, "order:a")
	wantNil(t, e.Do(bg, "order:a", nop, guard.Wait(time.Minute)))
}

// TestObserverPanicsAfterALockFailure: it is reported, and the key is free.
func TestObserverPanicsAfterALockFailure(t *testing.T) {
	eachServer(t, func(e *env) {
		e.create(&Stock{ID: 1, Left: 9})
		g := e.panics(e.db, time.Minute)
		e.wantPanic(func() {
			_ = g.Apply(bg, "sku:1", guard.Update(&Stock{ID: 1}, func(s *Stock) error {
				e.loseTo("sku:1", guard.Update(&Stock{ID: 1}, take).Run)
				return take(s)
			}))
		})
		e.wantEvent(notify.VerdictOverlap, notify.OutcomeRefused, "sku:1")
		e.wantFree("sku:1")
	})
}

// TestObserverPanicsAfterTheCommit: a lock that turns out to be gone is reported.
func TestObserverPanicsAfterTheCommit(t *testing.T) {
	each(t, func(e *env) {
		g := e.panics(e.db, time.Minute)
		e.wantPanic(func() {
			_ = g.Do(bg, "k", func(context.Context, *gorm.DB) error {
				e.Forget("k")
				return nil
			})
		})
		e.wantEvent(notify.VerdictLost, notify.OutcomeCommitted, "k")
		e.wantFree("k")
	})
}

package lock

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belaygo/belay/lock/lockengine"
)

// forgetful is an engine that grants everything and keeps nothing.
type forgetful struct{ lockengine.Engine }

func (forgetful) Acquire(context.Context, lockengine.Request, time.Duration) (lockengine.Grant, error) {
	return lockengine.Grant{Token: 1024, Place: lockengine.Place{Slot: -1}}, nil
}

func (forgetful) Renew(_ context.Context, hs []lockengine.Request, _ time.Duration) []error {
	errs := make([]error, len(hs))
	for i := range errs {
		errs[i] = lockengine.ErrNotHeld
	}
	return errs
}

func (forgetful) Release(context.Context, lockengine.Request) error { return lockengine.ErrNotHeld }

// TestLostWhilePassed: a lock that was handed over in memory and is lost before
// the next caller has taken it is lost to that caller, or nobody would be told.
func TestLostWhilePassed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := New(forgetful{}, Config{})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close(t.Context())
		first, err := l.Acquire(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		passed := make(chan *grant)
		if !l.begin() {
			t.Fatal("closed")
		}
		go func() { // a caller that stands still when its turn has come
			a, _ := l.queues.enter(t.Context(), "k", false, nil)
			passed <- a.grant
		}()
		synctest.Wait()
		if err := first.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		g := <-passed
		<-time.After(l.cfg.TTL) // the watchdog finds that it is not ours
		synctest.Wait()

		second := l.acceptHandOver(t.Context(), g)
		if err := second.Err(); !errors.Is(err, ErrLost) {
			t.Errorf("the lease says %v, want %v", err, ErrLost)
		}
		if second.Grant().FirstToken != first.Grant().Token || second.Grant().Token != first.Grant().Token+1 {
			t.Errorf("tokens %d to %d, want %d and the next", second.Grant().FirstToken, second.Grant().Token, first.Grant().Token)
		}
		if err := second.Release(t.Context()); !errors.Is(err, ErrLost) {
			t.Errorf("Release: %v, want %v", err, ErrLost)
		}
		third, err := l.TryAcquire(t.Context(), "k")
		if err != nil {
			t.Fatalf("nobody has the key: %v", err)
		}
		_ = third.Release(t.Context())
	})
}

package lock_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/lock/memlock"
)

func TestQueueIsFirstInFirstOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaults()
		l := newLocker(t, engine, lock.Config{})
		first := acquire(t, l, "k")
		var got []int
		for i := range 10 {
			go func() {
				lease, err := l.Acquire(t.Context(), "k")
				if err != nil {
					t.Errorf("waiter %d: %v", i, err)
					return
				}
				got = append(got, i)
				release(t, lease)
			}()
			synctest.Wait() // it is in the queue
		}
		if n := engine.sent().acquire; n != 1 {
			t.Errorf("%d acquires were sent while the key was held here, want 1", n)
		}
		start := time.Now()
		release(t, first)
		synctest.Wait()
		if want := []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}; !slices.Equal(got, want) {
			t.Errorf("order is %v, want %v", got, want)
		}
		if waited := time.Since(start); waited != 0 {
			t.Errorf("the queue moved on after %v, want at once", waited)
		}
	})
}

// A waiter that is cancelled at the very moment when its turn comes either
// takes it or leaves it to the next one.
func TestTurnIsNotLost(t *testing.T) {
	l := newLocker(t, memlock.New(), lock.Config{})
	for i := range 500 {
		key := strconv.Itoa(i)
		lease := acquire(t, l, key)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			lease, err := l.Acquire(ctx, key)
			if err == nil {
				release(t, lease)
				return
			}
			wantIs(t, err, context.Canceled)
		})
		wg.Go(func() {
			lease, err := l.Acquire(t.Context(), key)
			if err != nil {
				t.Errorf("the next waiter: %v", err)
				return
			}
			release(t, lease)
		})
		wg.Go(cancel)
		wg.Go(func() { release(t, lease) })
		wg.Wait()
	}
}

// When the turn and the end of the context meet, nothing is sent, and the turn
// goes on to the next caller.
func TestTurnOfEndedCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaults()
		l := newLocker(t, engine, lock.Config{})
		for range 300 {
			lease := acquire(t, l, "k")
			sent := engine.sent().acquire
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			failed := make(chan error, 1)
			go func() {
				_, err := l.Acquire(ctx, "k")
				failed <- err
			}()
			<-time.After(time.Second) // the same moment
			release(t, lease)
			err := <-failed
			wantIs(t, err, context.DeadlineExceeded)
			if _, ok := errors.AsType[*lockengine.HeldError](err); !ok {
				t.Fatalf("Acquire: %v, want a *HeldError", err)
			}
			if more := engine.sent().acquire - sent; more != 0 {
				t.Fatalf("%d acquires were sent", more)
			}
			release(t, acquire(t, l, "k"))
			cancel()
		}
	})
}

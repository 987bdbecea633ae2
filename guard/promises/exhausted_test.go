package promises_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/lock"
)

// exhaust takes the only connection of the pool, and has two operations wait for it. free gives it
// back, and wait returns when they are done.
func (e *env) exhaust() (free, wait func()) {
	e.t.Helper()
	e.inside().PassAfter(time.Hour)
	pool, err := e.DB.DB()
	wantNil(e.t, err)
	pool.SetMaxOpenConns(1)
	taken, err := pool.Conn(bg)
	wantNil(e.t, err)
	var waiting sync.WaitGroup
	for n := range 2 {
		waiting.Go(func() {
			if err := e.Apply(bg, fmt.Sprint("first:", n), guard.Insert(&Order{No: fmt.Sprint("first", n)})); err != nil {
				e.t.Error(err)
			}
		})
	}
	testwait.Until(e.t, "two wait for a connection", func() bool { return e.inside().Begins() == 2 })
	return func() { wantNil(e.t, taken.Close()) }, waiting.Wait
}

// awaitQueued waits until so many operations wait for the pool before their locks.
func (e *env) awaitQueued(n int) {
	e.t.Helper()
	testwait.Until(e.t, "they wait for the pool", func() bool { return e.inside().AtGate() == n })
}

// TestExhaustedPoolHoldsNoKey: while no connection is to be had, an operation leaves its key to others.
func TestExhaustedPoolHoldsNoKey(t *testing.T) {
	t.Parallel()
	each(t, func(e *env) {
		free, wait := e.exhaust()
		defer wait()
		done := make(chan error, 1)
		go func() { done <- e.Apply(bg, "k", guard.Insert(&Order{No: "k"}), guard.Wait(time.Millisecond)) }()
		e.awaitQueued(1)
		other := e.Peer(t, e.open())
		wantNil(t, other.Apply(bg, "k", guard.Insert(&Order{No: "other"})))
		free()
		wantNil(t, <-done)
		e.wantNoEvent()
	})
}

// TestGateLetsPass: operations that get no lock begin no transaction, and let others pass.
func TestGateLetsPass(t *testing.T) {
	t.Parallel()
	each(t, func(e *env) {
		e.inside().KeepPlaces(time.Hour)
		free, wait := e.exhaust()
		defer wait()
		ctx, cancel := context.WithCancel(bg)
		defer cancel()
		held := e.hold("k")
		defer func() { wantNil(t, held.Release(bg)) }()
		const callers = 5
		var refused sync.WaitGroup
		for range callers {
			refused.Go(func() { wantIs(t, e.Do(ctx, "k", e.never()), guard.ErrBusy) })
		}
		e.awaitQueued(callers)
		begun, end := make(chan struct{}), make(chan struct{})
		last := make(chan error, 1)
		go func() {
			last <- e.Do(ctx, "last", func(context.Context, *gorm.DB) error { close(begun); <-end; return nil })
		}()
		e.awaitQueued(callers + 1)
		free()
		testwait.Until(t, "the last one has passed", func() bool { return e.inside().AtGate() == 0 })
		refused.Wait()
		<-begun
		close(end)
		wantNil(t, <-last)
		e.wantNoEvent()
	})
}

// TestHotKeyLetsPass: operations that wait for a key keep nobody from the pool.
func TestHotKeyLetsPass(t *testing.T) {
	t.Parallel()
	each(t, func(e *env) {
		free, wait := e.exhaust()
		defer wait()
		held := e.hold("hot")
		ctx, cancel := context.WithCancel(bg)
		const callers = 5
		var hot sync.WaitGroup
		defer hot.Wait()
		defer func() { cancel(); wantNil(t, held.Release(bg)) }()
		for range callers {
			hot.Go(func() { wantIs(t, e.Do(ctx, "hot", e.never(), guard.Wait(time.Hour)), context.Canceled) })
		}
		e.awaitQueued(callers)
		calm := make(chan error, 1)
		go func() { calm <- e.Apply(ctx, "calm", guard.Insert(&Order{No: "calm"})) }()
		e.awaitQueued(callers + 1)
		free()
		testwait.Until(t, "the calm one is done", func() bool { return len(calm) == 1 })
		wantNil(t, <-calm)
	})
}

// TestHolderDoesNotWait: an operation whose context has the lock does not wait with it.
func TestHolderDoesNotWait(t *testing.T) {
	t.Parallel()
	each(t, func(e *env) {
		free, wait := e.exhaust()
		lease, err := e.inside().Acquire(bg, "k")
		wantNil(t, err)
		done := make(chan error, 1)
		go func() { done <- e.Apply(lease.Context(), "k", guard.Insert(&Order{No: "k"})) }()
		testwait.Until(t, "it begins", func() bool { return e.inside().Begins() == 3 })
		free()
		wait()
		wantNil(t, errors.Join(<-done, lease.Release(bg)))
	})
}

// hold acquires the lock on key from another instance.
func (e *env) hold(key string) *lock.Lease {
	e.t.Helper()
	locker, err := lock.New(e.Engine(), lock.Config{})
	wantNil(e.t, err)
	e.t.Cleanup(func() { wantNil(e.t, locker.Close(bg)) })
	lease, err := locker.TryAcquire(bg, key)
	wantNil(e.t, err)
	return lease
}

// TestCanceledAtTheGate: the end of the caller's context ends the wait.
func TestCanceledAtTheGate(t *testing.T) {
	t.Parallel()
	each(t, func(e *env) {
		free, wait := e.exhaust()
		ctx, cancel := context.WithCancel(bg)
		done := make(chan error, 1)
		go func() { done <- e.Do(ctx, "k", e.never()) }()
		e.awaitQueued(1)
		cancel()
		wantIs(t, <-done, context.Canceled)
		wantNil(t, e.hold("k").Release(bg))
		free()
		wait()
	})
}

package lock_test

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/lockengine"
)

// leaves are the ways in which an engine can leave a method without a return, as
// hooks of its client do.
var leaves = map[string]func(){
	"panic":  func() { panic("a hook") },
	"Goexit": runtime.Goexit,
}

// survive runs do in a goroutine that it may end, and waits for it.
func survive(do func()) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer func() { _ = recover() }() // as net/http does
		do()
	}()
	<-ended
}

// An engine that panics in a request costs that request. It shuts no gate, what may
// have been taken is released, and Close ends.
func TestEngineThatDoesNotReturn(t *testing.T) {
	for how, leave := range leaves {
		for what, do := range map[string]func(*testing.T, *faults, *lock.Locker){
			"TryAcquire": func(t *testing.T, engine *faults, l *lock.Locker) {
				engine.onAcquire(takeAnd(engine, leave))
				survive(func() { _, _ = l.TryAcquire(t.Context(), "k") })
			},
			"Acquire": func(t *testing.T, engine *faults, l *lock.Locker) {
				engine.onAcquire(takeAnd(engine, leave))
				survive(func() { _, _ = l.Acquire(t.Context(), "k") })
			},
			"Acquire of a caller who queued": func(t *testing.T, engine *faults, l *lock.Locker) {
				first := acquire(t, l, "k")
				engine.onAcquire(takeAnd(engine, leave))
				go survive(func() { _, _ = l.Acquire(t.Context(), "k") })
				synctest.Wait()
				release(t, first)
				pass(time.Second)
			},
			"Release": func(t *testing.T, engine *faults, l *lock.Locker) {
				lease := acquire(t, l, "k")
				engine.onRelease(func(context.Context, lockengine.Request) error {
					engine.onRelease(nil)
					leave()
					return nil
				})
				survive(func() { _ = lease.Release(t.Context()) })
			},
			"Release of a ghost": func(t *testing.T, engine *faults, l *lock.Locker) {
				for range 100 { // more than are released at a time
					leaveGhost(t, l, engine)
					engine.onRelease(func(context.Context, lockengine.Request) error {
						leave()
						return nil
					})
					survive(func() { _, _ = l.TryAcquire(t.Context(), "k") })
					engine.onRelease(nil)
					release(t, acquire(t, l, "k"))
				}
			},
		} {
			t.Run(what+", "+how, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					engine := newFaults()
					l := newLocker(t, engine, lock.Config{TTL: ttl, HandOver: -1})
					do(t, engine, l)
					engine.onAcquire(nil)
					synctest.Wait()
					engine.wantFree(t, "k")
					release(t, acquire(t, l, "k"))
					wantIs(t, l.Close(t.Context()), nil)
				})
			})
		}
	}
}

// takeAnd acquires, and then does not return.
func takeAnd(engine *faults, leave func()) acquireFunc {
	return func(ctx context.Context, h lockengine.Request, ttl time.Duration) (lockengine.Grant, error) {
		_, _ = engine.Engine.Acquire(ctx, h, ttl)
		leave()
		return lockengine.Grant{}, nil
	}
}

// A renewal that does not return is one that failed.
func TestRenewalThatDoesNotReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaults()
		l := newLocker(t, engine, lock.Config{TTL: ttl})
		lease := acquire(t, l, "k")
		engine.onRenew(func(context.Context, []lockengine.Request, time.Duration) []error {
			engine.onRenew(nil)
			runtime.Goexit()
			return nil
		})
		pass(ttl)
		wantAlive(t, lease, true)
		release(t, lease)
	})
}

// placed is an engine that knows where locks are.
type placed struct {
	*faults
	locate func()
}

func (p placed) Locate(string) lockengine.Place {
	p.locate()
	return lockengine.Place{Node: "n", Slot: -1}
}

// A panic of the engine in what the Locker does by itself, when no caller could recover it, ends
// neither the process nor the care for the locks.
func TestPanicInTheBackground(t *testing.T) {
	panics := func() { panic("a hook") }
	for name, test := range map[string]func(*testing.T, *faults, *lock.Locker){
		"renewal": func(t *testing.T, engine *faults, l *lock.Locker) {
			lease := acquire(t, l, "k")
			engine.onRenew(func(context.Context, []lockengine.Request, time.Duration) []error {
				engine.onRenew(nil)
				panic("a hook")
			})
			pass(2 * ttl)
			wantAlive(t, lease, true)
			release(t, lease)
		},
		"release of an orphan": func(t *testing.T, engine *faults, l *lock.Locker) {
			engine.onAcquire(takeAnd(engine, panics))
			failures := 3
			engine.onRelease(func(ctx context.Context, r lockengine.Request) error {
				if failures--; failures >= 0 {
					panic("a hook")
				}
				return engine.Engine.Release(ctx, r)
			})
			survive(func() { _, _ = l.TryAcquire(t.Context(), "k") })
			pass(ttl / 2)
			engine.wantFree(t, "k")
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				engine := newFaults()
				l := newLocker(t, engine, lock.Config{TTL: ttl})
				test(t, engine, l)
				wantIs(t, l.Close(t.Context()), nil)
			})
		})
	}
	t.Run("look where a lock is", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			l := newLocker(t, placed{newFaults(), panics}, lock.Config{TTL: ttl})
			lease := acquire(t, l, "k")
			pass(2 * ttl)
			wantAlive(t, lease, true)
			release(t, lease)
		})
	})
}

// nothing is an engine at whose pointer there is nothing.
type nothing struct{ lockengine.Engine }

func TestNilEngine(t *testing.T) {
	var none *nothing
	for _, engine := range []lockengine.Engine{nil, none} {
		if _, err := lock.New(engine, lock.Config{}); err == nil {
			t.Errorf("New takes %#v", engine)
		}
	}
}

// A program that releases with no context is wrong, but its lock is not lost.
func TestReleaseWithoutContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaults()
		l := newLocker(t, engine, lock.Config{TTL: ttl})
		lease := acquire(t, l, "k")
		survive(func() { _ = lease.Release(nil) }) //nolint:staticcheck // that is the point
		synctest.Wait()
		engine.wantFree(t, "k")
	})
}

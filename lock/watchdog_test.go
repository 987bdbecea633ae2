package lock_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/lock/memlock"
)

const (
	ttl      = 30 * time.Second
	believed = 29 * time.Second // from a successful request to the local deadline
	renewed  = 10 * time.Second // from one renewal to the next
)

func TestRenewalOutlivesTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := memlock.New()
		lease := acquire(t, newLocker(t, engine, lock.Config{TTL: ttl, MaxHold: -1}), "k")
		pass(10*ttl + time.Millisecond)
		wantAlive(t, lease, true)
		if left := time.Until(lease.Grant().Deadline); left <= believed-renewed-time.Second || left > believed {
			t.Errorf("deadline is %v away, want it to move along", left)
		}
		_, err := newLocker(t, engine, lock.Config{}).TryAcquire(t.Context(), "k")
		wantHeld(t, err, "k", lease.Grant().Owner)
		release(t, lease)
	})
}

func TestLeasesAreRenewedInOneBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaults()
		l := newLocker(t, engine, lock.Config{TTL: ttl})
		var leases []*lock.Lease
		for i := range 100 {
			leases = append(leases, acquire(t, l, strings.Repeat("k", i+1)))
		}
		pass(renewed)
		if n := engine.sent().renew; n != 1 {
			t.Errorf("%d renewals were sent, want 1", n)
		}
		pass(ttl)
		for _, lease := range leases {
			wantAlive(t, lease, true)
		}
	})
}

func TestRenewalGoesOnThroughErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaults()
		lease := acquire(t, newLocker(t, engine, lock.Config{TTL: ttl, MaxHold: -1}), "k")
		for _, fault := range []renewFunc{renewDown, renewHangs} {
			engine.onRenew(fault)
			pass(believed - renewed - time.Second)
			wantAlive(t, lease, true)
			engine.onRenew(nil)
			pass(5 * ttl)
			wantAlive(t, lease, true)
		}
	})
}

func TestEngineSaysNotOurs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaults()
		l := newLocker(t, engine, lock.Config{TTL: ttl})
		lease := acquire(t, l, "k")
		engine.Forget("k")
		pass(renewed - 1)
		wantAlive(t, lease, true) // it can't know
		pass(1)
		wantAlive(t, lease, false)
		if err := lease.Err(); !strings.Contains(err.Error(), `"k" on memory`) {
			t.Errorf("error %q names neither key nor node", err)
		}

		next := acquire(t, l, "k")
		wantIs(t, lease.Release(t.Context()), lock.ErrLost)
		synctest.Wait()
		wantAlive(t, next, true) // the late release is none of its business
		release(t, next)
		if n := engine.sent().renew; n != 1 {
			t.Errorf("%d renewals were sent, want 1", n)
		}
	})
}

func TestEngineUnreachable(t *testing.T) {
	stuck := make(chan struct{})
	for name, fault := range map[string]renewFunc{
		"answers with errors": renewDown,
		"hangs":               renewHangs,
		"hangs for ever": func(_ context.Context, hs []lockengine.Request, _ time.Duration) []error {
			<-stuck
			return sameVerdict(hs, nil)
		},
		"gives too few answers": func(context.Context, []lockengine.Request, time.Duration) []error { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				stuck = make(chan struct{})
				engine := newFaults()
				l := newLocker(t, engine, lock.Config{TTL: ttl})
				lease := acquire(t, l, "k")
				sent := time.Now()
				engine.onRenew(fault)
				if deadline := lease.Grant().Deadline; !deadline.Equal(sent.Add(believed)) {
					t.Errorf("deadline is %v after the request, want %v", deadline.Sub(sent), believed)
				}

				pass(believed - 1)
				wantAlive(t, lease, true)
				pass(1)
				wantAlive(t, lease, false)

				_, err := l.TryAcquire(t.Context(), "k")
				wantHeld(t, err, "k", lease.Grant().Owner) // says the engine: the gate is open
				pass(ttl - believed)
				engine.onRenew(nil)
				close(stuck)
				release(t, acquire(t, l, "k"))
			})
		})
	}
}

// A renewal that is answered counts from when it was sent.
func TestSlowRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaults()
		lease := acquire(t, newLocker(t, engine, lock.Config{TTL: ttl}), "k")
		engine.onRenew(func(ctx context.Context, hs []lockengine.Request, ttl time.Duration) []error {
			errs := engine.Engine.Renew(ctx, hs, ttl)
			<-time.After(900 * time.Millisecond)
			return errs
		})
		pass(renewed)
		sent := time.Now()
		pass(time.Second)
		if want := sent.Add(believed); !lease.Grant().Deadline.Equal(want) {
			t.Errorf("deadline is %v after the renewal was sent, want %v", lease.Grant().Deadline.Sub(sent), believed)
		}
	})
}

func TestNodesAreRenewedSideBySide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaults()
		engine.onAcquire(func(ctx context.Context, h lockengine.Request, ttl time.Duration) (lockengine.Grant, error) {
			grant, err := engine.Engine.Acquire(ctx, h, ttl)
			grant.Node = "node of " + h.Key
			return grant, err
		})
		engine.onRenew(func(ctx context.Context, hs []lockengine.Request, ttl time.Duration) []error {
			if len(hs) != 1 {
				t.Errorf("%d nodes in one batch", len(hs))
			}
			if hs[0].Key == "dead" {
				return renewHangs(ctx, hs, ttl)
			}
			return engine.Engine.Renew(ctx, hs, ttl)
		})
		l := newLocker(t, engine, lock.Config{TTL: ttl, RequestTimeout: ttl})
		dead, well := acquire(t, l, "dead"), acquire(t, l, "well")
		pass(ttl)
		wantAlive(t, dead, false)
		wantAlive(t, well, true)
	})
}

// Err looks at the clock: at the deadline it tells the truth whether or not the
// watchdog has run. With many leases some are asked before it has.
func TestErrAtDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var leases []*lock.Lease
		for range 200 {
			engine := newFaults()
			engine.onRenew(renewDown)
			leases = append(leases, acquire(t, newLocker(t, engine, lock.Config{TTL: ttl}), "k"))
		}
		<-time.After(time.Until(leases[0].Grant().Deadline))
		for _, lease := range leases {
			wantAlive(t, lease, false)
		}
	})
}

// The answer to an acquire may come when the lock can have expired already.
func TestAnswerComesTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaults()
		l := newLocker(t, engine, lock.Config{TTL: ttl})
		engine.onAcquire(func(ctx context.Context, h lockengine.Request, ttl time.Duration) (lockengine.Grant, error) {
			grant, err := engine.Engine.Acquire(ctx, h, ttl)
			<-time.After(believed)
			return grant, err
		})
		_, err := l.TryAcquire(t.Context(), "k")
		wantIs(t, err, lock.ErrLost)
		engine.onAcquire(nil)
		synctest.Wait()
		release(t, acquire(t, l, "k")) // what was left of it has been released
	})
}

package lock_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/lockengine"
)

// reports is an engine whose test says when a lock may have been lost.
type reports struct {
	*faults

	mu      sync.Mutex
	lost    map[string]func() // by key
	watched int
	stopped int
}

func newReports() *reports { return &reports{faults: newFaults(), lost: make(map[string]func())} }

func (e *reports) WatchLoss(r lockengine.Request, lost func()) (stop func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.watched++
	e.lost[r.Key] = lost
	return func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.stopped++
	}
}

// report says that the lock on key may have been lost.
func (e *reports) report(key string) {
	e.mu.Lock()
	lost := e.lost[key]
	e.mu.Unlock()
	lost()
}

func (e *reports) wantWatches(tb testing.TB, watched, stopped int) {
	tb.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.watched != watched || e.stopped != stopped {
		tb.Errorf("%d watches, %d of them stopped, want %d and %d", e.watched, e.stopped, watched, stopped)
	}
}

// longTTL has no renewal fall into a test.
const longTTL = 24 * time.Hour

func TestReportedLossEndsTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newReports()
		l := newLocker(t, e, lock.Config{TTL: longTTL})
		lease := acquire(t, l, "a")
		pass(time.Second)
		e.Forget("a")
		e.report("a")
		synctest.Wait()
		wantAlive(t, lease, false)
		e.wantSent(t, requests{acquire: 1, renew: 1})
		e.wantWatches(t, 1, 1)
		wantMetrics(t, l, map[string]float64{"acquires_total granted": 1, "acquire_seconds": 1, "lost_total push": 1})
		wantIs(t, lease.Release(t.Context()), lock.ErrLost)
	})
}

func TestReportInVain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newReports()
		l := newLocker(t, e, lock.Config{TTL: longTTL, MaxHold: -1})
		lease := acquire(t, l, "a")
		deadline := lease.Grant().Deadline
		pass(time.Second)
		for range 3 {
			e.report("a")
		}
		synctest.Wait()
		wantAlive(t, lease, true)
		e.wantSent(t, requests{acquire: 1, renew: 1})
		if later := lease.Grant().Deadline; later.Sub(deadline) != time.Second {
			t.Errorf("the deadline is %v later, want it by the renewal", later.Sub(deadline))
		}
		pass(longTTL/3 - time.Second)
		e.wantSent(t, requests{acquire: 1, renew: 1}) // the next one is due after the last
		pass(time.Second)
		e.wantSent(t, requests{acquire: 1, renew: 2})
		e.wantWatches(t, 1, 0)
		release(t, lease)
		e.wantWatches(t, 1, 1)
	})
}

// What an engine that is out of reach can't answer, it is asked again.
func TestReportWithoutAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newReports()
		l := newLocker(t, e, lock.Config{TTL: ttl})
		lease := acquire(t, l, "a")
		pass(time.Second)
		e.Forget("a")
		e.onRenew(renewDown)
		e.report("a")
		synctest.Wait()
		wantAlive(t, lease, true)
		e.onRenew(nil)
		pass(ttl / 20)
		wantAlive(t, lease, false)
	})
}

// The answer to a renewal may be older than the loss that is reported meanwhile.
func TestReportDuringARenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newReports()
		l := newLocker(t, e, lock.Config{TTL: ttl})
		lease := acquire(t, l, "a")
		e.onRenew(func(ctx context.Context, rs []lockengine.Request, ttl time.Duration) []error {
			errs := e.Engine.Renew(ctx, rs, ttl)
			<-time.After(100 * time.Millisecond) // on its way
			return errs
		})
		pass(ttl/3 + 50*time.Millisecond)
		e.Forget("a")
		e.report("a")
		synctest.Wait()
		e.wantSent(t, requests{acquire: 1, renew: 1}) // one at a time
		pass(time.Second)
		e.wantSent(t, requests{acquire: 1, renew: 2})
		wantAlive(t, lease, false)
	})
}

func TestShortLeasesAreNotWatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newReports()
		l := newLocker(t, e, lock.Config{TTL: longTTL})
		for range 100 {
			lease := acquire(t, l, "a")
			pass(10 * time.Millisecond)
			release(t, lease)
		}
		e.wantWatches(t, 0, 0)
		local, err := l.Acquire(t.Context(), "local", lock.Local())
		if err != nil {
			t.Fatal(err)
		}
		lease := acquire(t, l, "a")
		pass(100 * time.Millisecond)
		e.wantWatches(t, 1, 0)
		release(t, local)
		release(t, lease)
		e.wantWatches(t, 1, 1)
	})
}

// Each way in which a grant ends stops its watch.
func TestWatchesEnd(t *testing.T) {
	for name, end := range map[string]func(*testing.T, *reports, *lock.Locker, *lock.Lease){
		"released": func(t *testing.T, _ *reports, _ *lock.Locker, lease *lock.Lease) { release(t, lease) },
		"lost at a renewal": func(_ *testing.T, e *reports, _ *lock.Locker, _ *lock.Lease) {
			e.Forget("a")
			pass(renewed)
		},
		"not renewed": func(_ *testing.T, e *reports, _ *lock.Locker, _ *lock.Lease) {
			e.onRenew(renewDown)
			pass(ttl)
		},
		"held for too long": func(*testing.T, *reports, *lock.Locker, *lock.Lease) { pass(time.Minute) },
		"abandoned": func(_ *testing.T, _ *reports, _ *lock.Locker, lease *lock.Lease) {
			lease.Abandon()
			pass(ttl)
		},
		"closed": func(_ *testing.T, _ *reports, l *lock.Locker, _ *lock.Lease) { _ = l.Close(endedContext()) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newReports()
				l := newLocker(t, e, lock.Config{TTL: ttl, MaxHold: time.Minute})
				lease := acquire(t, l, "a")
				pass(time.Second)
				e.wantWatches(t, 1, 0)
				end(t, e, l, lease)
				e.wantWatches(t, 1, 1)
				e.report("a") // too late
				synctest.Wait()
			})
		})
	}
}

func TestReportedLossOfAHandOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newReports()
		l := newLocker(t, e, lock.Config{TTL: longTTL, HandOver: time.Hour})
		first := acquire(t, l, "a")
		second := make(chan *lock.Lease, 1)
		go func() {
			lease, err := l.Acquire(context.Background(), "a")
			if err != nil {
				t.Error(err)
			}
			second <- lease
		}()
		pass(time.Second)
		release(t, first)
		lease := <-second
		e.wantWatches(t, 1, 0)
		e.Forget("a")
		e.report("a")
		synctest.Wait()
		wantAlive(t, lease, false)
	})
}

// When all locks are deleted, the engine gets one batch after the other.
func TestStormOfReports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newReports()
		l := newLocker(t, e, lock.Config{TTL: longTTL})
		var leases []*lock.Lease
		for i := range 1300 {
			leases = append(leases, acquire(t, l, fmt.Sprint(i)))
		}
		pass(time.Second)
		var running, most, largest int
		e.onRenew(func(ctx context.Context, rs []lockengine.Request, _ time.Duration) []error {
			e.mu.Lock()
			running++
			most, largest = max(most, running), max(largest, len(rs))
			e.mu.Unlock()
			<-time.After(time.Millisecond)
			e.mu.Lock()
			running--
			e.mu.Unlock()
			return sameVerdict(rs, lockengine.ErrNotHeld)
		})
		for i := range leases {
			e.report(fmt.Sprint(i))
		}
		pass(time.Second)
		for _, lease := range leases {
			wantAlive(t, lease, false)
		}
		if most != 1 || largest > 512 {
			t.Errorf("%d batches at once, the largest of %d, want 1 of at most 512", most, largest)
		}
	})
}

// A panic of the engine keeps no suspect from being renewed.
func TestSuspectsOutliveAPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newReports()
		l := newLocker(t, e, lock.Config{TTL: ttl})
		a, b := acquire(t, l, "a"), acquire(t, l, "b")
		pass(time.Second)
		e.onRenew(func(context.Context, []lockengine.Request, time.Duration) []error { panic("a driver") })
		e.report("a")
		synctest.Wait()
		wantAlive(t, a, true)
		e.onRenew(nil)
		e.Forget("a")
		e.Forget("b")
		e.report("b")
		synctest.Wait()
		wantAlive(t, b, false)
		pass(ttl / 20)
		wantAlive(t, a, false)
	})
}

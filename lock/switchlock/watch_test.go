package switchlock_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/lock/switchlock"
)

// Two of its values can't be compared.
type incomparable struct {
	*counted
	_ []int
}

// Engines of any type wake those who wait.
func TestWatchInIncomparableEngines(t *testing.T) {
	for name, record := range map[string]switchlock.Record{
		"before": {Epoch: 1, From: "old", To: "old", Settled: true, Lease: lease, TTL: longest},
		"moving": unending(),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				old, next := newCounted(), newCounted()
				e := open(t, switchlock.Config{
					Source: &store{record: record}, First: "old",
					Engines: map[string]lockengine.Engine{"old": incomparable{counted: old}, "new": incomparable{counted: next}},
				})
				synctest.Wait()
				rung := make(chan struct{}, 1)
				stop, err := e.Watch(t.Context(), "k", func() { rung <- struct{}{} })
				if err != nil {
					t.Fatal(err)
				}
				<-time.After(lease) // the record is read again and again
				old.ring()
				<-rung
				stop()
			})
		})
	}
}

// An unwatched engine can't notify of releases now.
type unwatched struct{ *counted }

func (unwatched) Watch(context.Context, string, func()) (stop func(), err error) {
	return nil, errors.New("no subscription")
}

// Waiters whose watch can't move to the new engine poll, as often as if they had never had one.
func TestWaitersPollWithoutTheirWatch(t *testing.T) {
	fails, noWaker := newCounted(), newEngine()
	for name, next := range map[string]struct {
		lockengine.Engine
		sent func() int
	}{
		"it fails":           {unwatched{fails}, fails.sent},
		"there is none more": {noWaker, func() int { return int(noWaker.calls.Load()) }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const d = 10 * time.Second
				old := newCounted()
				source := &store{record: switchlock.Record{Epoch: 1, From: "old", To: "old", Settled: true, Lease: lease, TTL: longest}}
				for _, e := range []lockengine.Engine{old, next} {
					if _, err := e.Acquire(t.Context(), theirs, longest); err != nil {
						t.Fatal(err)
					}
				}
				l := newLocker(t, open(t, switchlock.Config{Source: source, First: "old", Engines: map[string]lockengine.Engine{"old": old, "new": next.Engine}}), longest)
				ctx, cancel := context.WithCancel(t.Context())
				var waits sync.WaitGroup
				waits.Go(func() {
					if _, err := l.Acquire(ctx, theirs.Key); err == nil {
						t.Error("the waiter gets the lock")
					}
				})
				<-time.After(time.Minute)
				source.set(switchlock.Record{Epoch: 2, From: "old", To: "new", Settled: true, Lease: lease, TTL: longest})
				<-time.After(time.Minute)
				before := next.sent()
				<-time.After(d)
				least, most := 20*int(d.Seconds()), mostRequests*int(d.Seconds())
				if n := next.sent() - before; n < least || n > most {
					t.Errorf("%d requests in %v, want %d to %d", n, d, least, most)
				}
				cancel()
				waits.Wait()
			})
		})
	}
}

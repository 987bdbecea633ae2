package promises_test

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/guard/guardtest"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/lock/memlock"
)

// distant is an engine that is sound, and whose answers to acquires take rtt.
type distant struct {
	lockengine.Engine
	rtt time.Duration
}

func (d distant) Acquire(ctx context.Context, r lockengine.Request, ttl time.Duration) (lockengine.Grant, error) {
	select {
	case <-time.After(d.rtt):
		return d.Engine.Acquire(ctx, r, ttl)
	case <-ctx.Done():
		return lockengine.Grant{}, errors.Join(lockengine.ErrNoAnswer, ctx.Err())
	}
}

// TestShortTimeIsNoOutage: whoever has less time left than one answer of a sound engine takes is
// busy. Nothing is published, and under DBOnly nobody goes without the lock.
func TestShortTimeIsNoOutage(t *testing.T) {
	const rtt = 10 * time.Millisecond
	wait := func(d time.Duration) func(*guard.Guard) error {
		return func(g *guard.Guard) error {
			return g.Apply(bg, "held", guard.Insert(&Order{No: "a"}), guard.Wait(d))
		}
	}
	for name, test := range map[string]struct {
		callers int // one each 5 ms
		call    func(*guard.Guard) error
	}{
		"a queue":              {100, wait(100 * time.Millisecond)},
		"alone":                {1, wait(5 * time.Millisecond)},
		"a queue of the hasty": {10, wait(5 * time.Millisecond)},
		"the second key": {1, func(g *guard.Guard) error {
			return g.Apply(bg, "free", guard.Insert(&Order{No: "a"}), guard.Also("held"), guard.Wait(15*time.Millisecond))
		}},
		"a queue with deadlines": {200, func(g *guard.Guard) error {
			ctx, cancel := context.WithTimeout(bg, 600*time.Millisecond)
			defer cancel()
			return g.Apply(ctx, "held", guard.Insert(&Order{No: "a"}), guard.Wait(time.Minute))
		}},
	} {
		for _, policy := range []guard.Policy{guard.FailClosed, guard.DBOnly} {
			t.Run(name, func(t *testing.T) {
				db := testdb.OpenSQLite(t, filepath.Join(t.TempDir(), "a.db"))
				synctest.Test(t, func(t *testing.T) {
					shared := memlock.New()
					other, err := lock.New(shared, lock.Config{})
					wantNil(t, err)
					_, err = other.Acquire(bg, "held")
					wantNil(t, err)
					locker, err := lock.New(distant{shared, rtt}, lock.Config{})
					wantNil(t, err)
					var events guardtest.Recorder
					g, err := guard.New(db, locker, guard.Config{Service: "s", Publisher: &events, OnUnavailable: policy})
					wantNil(t, err)
					var calls sync.WaitGroup
					for range test.callers {
						calls.Go(func() { wantIs(t, test.call(g), guard.ErrBusy) })
						<-time.After(5 * time.Millisecond)
					}
					calls.Wait()
					<-time.After(time.Minute)
					wantMetrics(t, g, map[string]float64{"degraded": 0, "without_lock_total": 0})
					wantNil(t, g.Close(bg))
					if n := len(events.All()); n != 0 {
						t.Errorf("%d events, want none: %+v", n, events.All()[0])
					}
					wantNil(t, locker.Close(bg))
					ended, cancel := context.WithCancel(bg)
					cancel()
					_ = other.Close(ended)
				})
			})
		}
	}
}

// TestSilenceIsFoundByShortTimes: callers that wait for less time than an engine may take find
// out all the same that it does not answer.
func TestSilenceIsFoundByShortTimes(t *testing.T) {
	inBubble(t, func(r *refuser) {
		r.engine.mute.Store(true)
		for range 3 {
			begun := time.Now()
			err := r.guard.Apply(bg, "k", guard.Insert(&Order{No: "a"}), guard.Wait(5*time.Millisecond))
			wantIs(r.t, err, guard.ErrUnavailable)
			if took := time.Since(begun); took > 600*time.Millisecond {
				r.t.Errorf("it took %v, want half a second at most", took)
			}
		}
		r.engine.mute.Store(false)
		<-time.After(time.Minute)
		r.wantRefused("a", 3)
	})
}

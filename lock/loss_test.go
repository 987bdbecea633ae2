package lock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belaygo/belay/lock"
)

// TestLossTellsWhy: whoever explains a lost lock must know whether its holder
// tried to renew it.
func TestLossTellsWhy(t *testing.T) {
	for name, tc := range map[string]struct {
		renew              renewFunc
		expired, unrenewed bool
	}{
		"renewals fail":        {renewDown, true, true},
		"nothing comes of one": {renewLate, true, false},
		"not ours any more":    {nil, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				engine := newFaults()
				lease := acquire(t, newLocker(t, engine, lock.Config{}), "k")
				engine.onRenew(tc.renew)
				if tc.renew == nil {
					engine.Forget("k")
				}
				pass(ttl)
				err := lease.Err()
				wantIs(t, err, lock.ErrLost)
				if got := errors.Is(err, lock.ErrExpired); got != tc.expired {
					t.Errorf("%v: expired %v, want %v", err, got, tc.expired)
				}
				if got := errors.Is(err, lock.ErrUnrenewed); got != tc.unrenewed {
					t.Errorf("%v: unrenewed %v, want %v", err, got, tc.unrenewed)
				}
				pass(3 * ttl)
			})
		})
	}
}

// TestRenewedAgain: a renewal that failed once is no reason later on.
func TestRenewedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFaults()
		lease := acquire(t, newLocker(t, engine, lock.Config{}), "k")
		engine.onRenew(renewDown)
		pass(ttl/3 + time.Second)
		engine.onRenew(nil)
		pass(ttl)
		wantAlive(t, lease, true)
		engine.onRenew(renewLate)
		pass(ttl)
		wantIs(t, lease.Err(), lock.ErrExpired)
		if err := lease.Err(); errors.Is(err, lock.ErrUnrenewed) {
			t.Errorf("%v: the renewal that failed was long ago", err)
		}
		pass(3 * ttl)
	})
}

// renewLate does not answer before all is over.
func renewLate(_ context.Context, hs []lock.Hold, _ time.Duration) []error {
	<-time.After(2 * ttl)
	return sameVerdict(hs, errDown)
}

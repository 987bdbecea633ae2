package memlock_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/lock/memlock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const ttl = time.Second

var (
	mine   = lockengine.Request{Key: "k", Owner: "me:1"}
	theirs = lockengine.Request{Key: "k", Owner: "they:1"}
)

func acquire(t *testing.T, e lockengine.Engine, h lockengine.Request) lockengine.Grant {
	t.Helper()
	grant, err := e.Acquire(t.Context(), h, ttl)
	if err != nil {
		t.Fatalf("Acquire for %s: %v", h.Owner, err)
	}
	return grant
}

func TestAcquire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memlock.New()
		grant := acquire(t, e, mine)
		if want := (lockengine.Place{Node: "memory", Slot: -1}); grant.Place != want {
			t.Errorf("place is %+v, want %+v", grant.Place, want)
		}

		<-time.After(ttl / 4)
		_, err := e.Acquire(t.Context(), theirs, ttl)
		var held *lockengine.HeldError
		if !errors.As(err, &held) {
			t.Fatalf("Acquire of a held key: %v, want a *HeldError", err)
		}
		if held.Key != "k" || held.Holder.Owner != mine.Owner || held.Holder.TTL != 3*ttl/4 {
			t.Errorf("held: %+v", held)
		}
		acquire(t, e, lockengine.Request{Key: "another key", Owner: theirs.Owner})
	})
}

func TestAcquireTwiceIsOneHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memlock.New()
		acquire(t, e, mine)
		<-time.After(ttl / 2)
		acquire(t, e, mine)
		if holder, _ := e.Inspect(t.Context(), "k"); holder.TTL != ttl {
			t.Errorf("expires in %v, want %v", holder.TTL, ttl)
		}
		if err := e.Release(t.Context(), mine); err != nil {
			t.Errorf("Release: %v", err)
		}
		acquire(t, e, theirs)
	})
}

func TestExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memlock.New()
		acquire(t, e, mine)
		<-time.After(ttl)
		if holder, err := e.Inspect(t.Context(), "k"); err != nil || holder.Owner != "" {
			t.Errorf("Inspect: %+v, %v, want nobody", holder, err)
		}
		acquire(t, e, theirs)
		if err := e.Renew(t.Context(), []lockengine.Request{mine}, ttl)[0]; !errors.Is(err, lockengine.ErrNotHeld) {
			t.Errorf("Renew of an expired hold: %v, want ErrNotHeld", err)
		}
		if err := e.Release(t.Context(), mine); !errors.Is(err, lockengine.ErrNotHeld) {
			t.Errorf("Release of an expired hold: %v, want ErrNotHeld", err)
		}
	})
}

func TestRenew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memlock.New()
		acquire(t, e, mine)
		<-time.After(ttl / 2)
		errs := e.Renew(t.Context(), []lockengine.Request{theirs, mine, {Key: "free", Owner: "me:1"}}, ttl)
		if len(errs) != 3 || !errors.Is(errs[0], lockengine.ErrNotHeld) || errs[1] != nil || !errors.Is(errs[2], lockengine.ErrNotHeld) {
			t.Errorf("Renew: %v, want not held, nil, not held", errs)
		}
		if holder, _ := e.Inspect(t.Context(), "k"); holder.Owner != mine.Owner || holder.TTL != ttl {
			t.Errorf("holder is %+v, want the renewed one", holder)
		}
	})
}

func TestReleaseOfAnother(t *testing.T) {
	e := memlock.New()
	acquire(t, e, mine)
	if err := e.Release(t.Context(), theirs); !errors.Is(err, lockengine.ErrNotHeld) {
		t.Errorf("Release: %v, want ErrNotHeld", err)
	}
	if holder, _ := e.Inspect(t.Context(), "k"); holder.Owner != mine.Owner {
		t.Errorf("holder is %+v, want mine", holder)
	}
}

func TestTokensGrow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // no time passes between the grants
		e := memlock.New()
		var last int64
		for i := range 1000 {
			grant := acquire(t, e, lockengine.Request{Key: fmt.Sprint("k", i%2), Owner: "me:1"})
			if grant.Token < last+1024 {
				t.Fatalf("token %d after %d, want room for 1023 between them", grant.Token, last)
			}
			last = grant.Token
		}
	})
}

func TestEndedContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	e := memlock.New()
	if _, err := e.Acquire(ctx, mine, ttl); !errors.Is(err, context.Canceled) {
		t.Errorf("Acquire: %v, want context.Canceled", err)
	}
	acquire(t, e, theirs)
}

func TestOneOfManyGetsIt(t *testing.T) {
	e := memlock.New()
	var granted atomic.Int32
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			if _, err := e.Acquire(t.Context(), lockengine.Request{Key: "k", Owner: fmt.Sprint(i)}, time.Hour); err == nil {
				granted.Add(1)
			}
		})
	}
	wg.Wait()
	if n := granted.Load(); n != 1 {
		t.Errorf("%d of 64 got the key, want 1", n)
	}
}

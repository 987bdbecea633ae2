package lock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/memlock"
)

func keysOf(b *lock.Bundle) (keys []string) {
	for _, lease := range b.Leases() {
		keys = append(keys, lease.Grant().Key)
	}
	return keys
}

func TestAcquireAll(t *testing.T) {
	l := newLocker(t, memlock.New(), lock.Config{})
	b, err := l.AcquireAll(t.Context(), []string{"b", "a", "b", "c"})
	if err != nil {
		t.Fatal(err)
	}
	if got := keysOf(b); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("keys are %q", got)
	}
	inner, err := l.TryAcquire(b.Context(), "b")
	if err != nil {
		t.Fatalf("acquire inside: %v", err)
	}
	if err := errors.Join(b.Err(), inner.Release(t.Context()), b.Release(t.Context())); err != nil {
		t.Fatal(err)
	}
	if cause := context.Cause(b.Context()); !errors.Is(cause, lock.ErrNotHeld) {
		t.Errorf("after the release the context ends with %v", cause)
	}
	if err := b.Release(t.Context()); !errors.Is(err, lock.ErrNotHeld) {
		t.Errorf("a second release returns %v", err)
	}
	for _, key := range []string{"a", "b", "c"} {
		release(t, acquire(t, l, key))
	}
}

// TestAcquireAllOrNone: who does not get the last key gives back those before it.
func TestAcquireAllOrNone(t *testing.T) {
	engine := memlock.New()
	l, other := newLocker(t, engine, lock.Config{}), newLocker(t, engine, lock.Config{})
	held, err := other.Acquire(t.Context(), "b")
	if err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	for name, all := range map[string]func() (*lock.Bundle, error){
		"without waiting": func() (*lock.Bundle, error) { return l.TryAcquireAll(t.Context(), []string{"a", "b", "c"}) },
		"after waiting":   func() (*lock.Bundle, error) { return l.AcquireAll(short, []string{"a", "b", "c"}) },
	} {
		_, err := all()
		if h, ok := errors.AsType[*lock.HeldError](err); !ok || h.Key != "b" {
			t.Errorf("%s: error is %v, want one that names b", name, err)
		}
		release(t, acquire(t, other, "a"))
		release(t, acquire(t, other, "c"))
	}
	if err := held.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestBundleEndsWithItsFirstLostLease(t *testing.T) {
	engine := memlock.New()
	l := newLocker(t, engine, lock.Config{TTL: 300 * time.Millisecond})
	b, err := l.AcquireAll(t.Context(), []string{"a", "b"})
	if err != nil {
		t.Fatal(err)
	}
	owner := b.Leases()[1].Grant().Owner
	if err := engine.Release(t.Context(), lock.Request{Key: "b", Owner: owner}); err != nil {
		t.Fatal(err)
	}
	<-b.Context().Done()
	if cause := context.Cause(b.Context()); !errors.Is(cause, lock.ErrLost) || !errors.Is(b.Err(), lock.ErrLost) {
		t.Errorf("the context ends with %v, and Err returns %v", cause, b.Err())
	}
	if err := b.Release(t.Context()); !errors.Is(err, lock.ErrLost) {
		t.Errorf("release returns %v", err)
	}
	release(t, acquire(t, l, "a"))
}

func TestAcquireAllMisuse(t *testing.T) {
	l := newLocker(t, memlock.New(), lock.Config{})
	many := make([]string, 17)
	for i := range many {
		many[i] = fmt.Sprint(i)
	}
	for name, keys := range map[string][]string{"none": nil, "too many": many, "an empty one": {"a", ""}, "a bad one": {"a", "{b"}} {
		if _, err := l.TryAcquireAll(t.Context(), keys); !errors.Is(err, lock.ErrInvalidKey) {
			t.Errorf("%s: error is %v", name, err)
		}
	}
	release(t, acquire(t, l, "a"))
}

// TestAcquireAllHasNoDeadlock: callers of two Lockers want pairs in all orders.
func TestAcquireAllHasNoDeadlock(t *testing.T) {
	engine := memlock.New()
	lockers := []*lock.Locker{newLocker(t, engine, lock.Config{}), newLocker(t, engine, lock.Config{})}
	var inside [5]sync.Mutex
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for range 50 {
				x, y := rand.IntN(len(inside)), rand.IntN(len(inside))
				b, err := lockers[i%2].AcquireAll(t.Context(), []string{fmt.Sprint(x), fmt.Sprint(y)})
				if err != nil {
					t.Error(err)
					return
				}
				if !inside[x].TryLock() || x != y && !inside[y].TryLock() {
					t.Error("two callers have a key")
					return
				}
				if inside[x].Unlock(); x != y {
					inside[y].Unlock()
				}
				if err := b.Release(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}

// TestBundleOfAnEngineThatDoesNotReturn: its caller may recover, and no key stays locked.
func TestBundleOfAnEngineThatDoesNotReturn(t *testing.T) {
	for how, leave := range leaves {
		for _, key := range []string{"a", "b"} {
			t.Run(how+" over "+key, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					engine := newFaults()
					l := newLocker(t, engine, lock.Config{TTL: ttl})
					b, err := l.AcquireAll(t.Context(), []string{"a", "b"})
					wantIs(t, err, nil)
					engine.onRelease(func(ctx context.Context, r lock.Request) error {
						if r.Key == key {
							engine.onRelease(nil)
							leave()
						}
						return engine.Engine.Release(ctx, r)
					})
					survive(func() { _ = b.Release(t.Context()) })
					synctest.Wait()
					engine.wantFree(t, "a")
					engine.wantFree(t, "b")
				})
			})
		}
	}
}

// TestAcquireAllEndsWithALostLease: a caller that waits for a key, and has lost one that it
// held, waits no longer.
func TestAcquireAllEndsWithALostLease(t *testing.T) {
	engine := newFaults()
	l, other := newLocker(t, engine, lock.Config{TTL: 300 * time.Millisecond}), newLocker(t, engine, lock.Config{})
	held := acquire(t, other, "b")
	ended := make(chan error)
	go func() {
		_, err := l.AcquireAll(t.Context(), []string{"a", "b"})
		ended <- err
	}()
	testwait.Until(t, "the first key is held", func() bool {
		holder, _ := engine.Inspect(t.Context(), "a")
		return holder.Owner != ""
	})
	engine.Forget("a")
	if err := <-ended; !errors.Is(err, lock.ErrLost) {
		t.Errorf("the error is %v", err)
	}
	release(t, held)
	release(t, acquire(t, l, "b"))
}

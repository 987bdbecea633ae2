package holds_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belaygo/belay/lock/internal/holds"
)

var mine = holds.Hold{Key: "k", Owner: "me:1"}

// newSet returns a Set, and how many of its locks were deleted.
func newSet(t *testing.T) (s *holds.Set[int], deleted *atomic.Int32) {
	t.Helper()
	deleted = new(atomic.Int32)
	s = holds.New(func(holds.Hold, int) { deleted.Add(1) })
	t.Cleanup(func() { s.Close() })
	return s, deleted
}

func note(n int) func(int) (int, bool) { return func(int) (int, bool) { return n, true } }

// after lets the time pass, and fails the test unless want locks are deleted by then.
func after(t *testing.T, d time.Duration, deleted *atomic.Int32, want int32) {
	t.Helper()
	<-time.After(d)
	synctest.Wait()
	if got := deleted.Load(); got != want {
		t.Errorf("after %v: %d deleted, want %d", d, got, want)
	}
}

func TestUnrenewedIsDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, deleted := newSet(t)
		s.Add(mine, 10*time.Second, note(1))
		after(t, 9*time.Second, deleted, 0)
		s.Add(mine, 10*time.Second, note(2))
		after(t, 9*time.Second, deleted, 0)
		after(t, 2*time.Second, deleted, 1)
		if s.Begin(mine) {
			t.Error("a lock that is being deleted can be acquired")
		}
		if first, second := s.Retry(mine), s.Retry(mine); !first || second {
			t.Errorf("Retry = %t, %t, want true once", first, second)
		}
		after(t, 2*time.Second, deleted, 2)
		s.Remove(mine)
		if !s.Begin(mine) {
			t.Error("a lock that was deleted cannot be acquired")
		}
	})
}

// A request on its way may renew the lock, or have renewed it.
func TestRequestDefersDeletion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, deleted := newSet(t)
		s.Begin(mine)
		s.Begin(mine)
		s.Add(mine, time.Second, note(1))
		s.Done(mine)
		after(t, 10*time.Second, deleted, 0)
		s.Done(mine)
		after(t, time.Second, deleted, 1)
	})
}

func TestSetKnowsItsLocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, deleted := newSet(t)
		other := holds.Hold{Key: "k", Owner: "me:2"}
		s.Add(mine, time.Hour, note(1))
		s.Begin(other)
		if all := s.All(); len(all) != 2 || !s.Has(mine) || s.Has(other) {
			t.Errorf("the Set has %v", all)
		}
		s.Change(func(n int) int { return n + 1 })
		if n := s.RemoveAll(func(n int) bool { return n == 2 }); n != 1 || s.Has(mine) {
			t.Errorf("%d locks removed, want 1", n)
		}
		if s.Add(mine, time.Second, func(int) (int, bool) { return 0, false }) || s.Has(mine) {
			t.Error("a lock that has ended is in the Set")
		}
		s.Add(mine, time.Second, note(1))
		if n := s.Close(); n != 1 || s.Add(mine, time.Second, note(1)) {
			t.Errorf("%d locks at Close, want 1, and none after it", n)
		}
		after(t, time.Hour, deleted, 0)
	})
}

package lock_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/lock/memlock"
)

// A stress has callers of several Lockers compete for a few keys, each of which
// protects a journal that nothing else protects.
type stress struct {
	t        *testing.T
	engine   lockengine.Engine
	lockers  []*lock.Locker
	journals map[string]*journal
	patience time.Duration // of some callers, 0 = endless
}

// A journal has the tokens of those who had the key, in the order of holding.
type journal struct{ tokens []int64 }

func newStress(t *testing.T, engine lockengine.Engine, lockers int) *stress {
	s := &stress{t: t, engine: engine, journals: map[string]*journal{"a": {}, "b": {}}}
	for range lockers {
		s.lockers = append(s.lockers, newLocker(t, engine, lock.Config{}))
	}
	return s
}

// run ends when each of the callers of each Locker has had each key in turn.
func (s *stress) run(callers, rounds int) {
	var wg sync.WaitGroup
	for _, l := range s.lockers {
		for range callers {
			wg.Go(func() {
				for range rounds {
					for key, j := range s.journals {
						s.visit(l, key, j)
					}
				}
			})
		}
	}
	wg.Wait()
	for key, j := range s.journals {
		for i := range len(j.tokens) - 1 {
			if j.tokens[i] >= j.tokens[i+1] {
				s.t.Fatalf("token %d of %q after %d", j.tokens[i+1], key, j.tokens[i])
			}
		}
		if holder, _ := s.engine.Inspect(s.t.Context(), key); holder.Owner != "" {
			s.t.Errorf("%q is held by %s in the end", key, holder.Owner)
		}
		if s.patience == 0 && len(j.tokens) != len(s.lockers)*callers*rounds {
			s.t.Errorf("%d grants of %q, want %d", len(j.tokens), key, len(s.lockers)*callers*rounds)
		}
	}
}

func (s *stress) visit(l *lock.Locker, key string, j *journal) {
	ctx := s.t.Context()
	if s.patience > 0 && rand.N(2) == 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, rand.N(s.patience))
		defer cancel()
	}
	lease, err := l.Acquire(ctx, key)
	if err != nil {
		if ctx == s.t.Context() || !errors.Is(err, context.DeadlineExceeded) {
			s.t.Errorf("Acquire: %v", err)
		}
		return
	}
	tokens := j.tokens
	if rand.N(4) == 0 {
		inner, err := l.TryAcquire(lease.Context(), key)
		if err != nil {
			s.t.Errorf("nested TryAcquire: %v", err)
			return
		}
		release(s.t, inner)
	}
	runtime.Gosched()
	j.tokens = append(tokens, lease.Grant().Token)
	release(s.t, lease)
}

func TestStress(t *testing.T) {
	t.Run("polling", func(t *testing.T) { newStress(t, memlock.New(), 3).run(8, 25) })
	t.Run("listening", func(t *testing.T) { newStress(t, newBells(), 3).run(8, 100) })
	t.Run("listening, impatient", func(t *testing.T) {
		s := newStress(t, newBells(), 3)
		s.patience = time.Millisecond
		s.run(8, 100)
	})
}

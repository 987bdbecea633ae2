package interop_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/lock"
)

const (
	handovers = 50
	// wakeLimit is what a hand-over may take and still be one by message. Who
	// misses the message asks again late: a Locker after up to a second,
	// Redisson when the lock would have expired, which is 10 s away.
	wakeLimit = 500 * time.Millisecond
)

// goWakesJava measures from the call of Release to the answer of a Java thread
// that waited in lock().
func goWakesJava(name string) func(*testing.T, *stage) string {
	return func(t *testing.T, s *stage) string {
		key := teststack.Key(t, name)
		locker := newLocker(t, s.engine, 10*time.Second)
		m, a := s.monitor(t), s.thread(t, "a")
		return handOver(t, func() time.Duration {
			held := acquire(t, locker, key)
			m.take(t, key)
			a.begin(t, "lock", key)
			// It asks, subscribes, and asks once more before it sleeps.
			testwait.Until(t, "the Java thread sleeps", func() bool {
				calls := m.calls(key)
				return sent("ssubscribe", calls) > 0 && sent("eval", calls) > 1
			})

			start := time.Now()
			release(t, held)
			a.result(t)
			took := time.Since(start)
			a.do(t, "unlock", key)
			return took
		})
	}
}

// javaWakesGo measures from the order to unlock() to the end of the Acquire that
// waited.
func javaWakesGo(name string) func(*testing.T, *stage) string {
	return func(t *testing.T, s *stage) string {
		key := teststack.Key(t, name)
		m, a := s.monitor(t), s.thread(t, "a")
		return handOver(t, func() time.Duration {
			owner := a.do(t, "lease", key, lease)
			m.take(t, key)
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			got := make(chan error, 1)
			var held *lock.Lease
			go func() {
				var err error
				held, err = s.locker.Acquire(ctx, key)
				got <- err
			}()
			testwait.Until(t, "Go has asked and waits", func() bool {
				asked := slices.DeleteFunc(m.calls(key), func(c call) bool { return c.mentions(owner) })
				listeners, _ := s.subscribers(t, channel(key))
				return sent("eval", asked) > 1 || sent("eval", asked) > 0 && listeners > 0
			})

			start := time.Now()
			a.begin(t, "unlock", key)
			if err := <-got; err != nil {
				t.Fatal(err)
			}
			took := time.Since(start)
			a.result(t)
			release(t, held)
			return took
		})
	}
}

// handOver does one hand-over after the other and reports how long they took.
// It gives up after the third that was late.
func handOver(t *testing.T, once func() time.Duration) string {
	t.Helper()
	var took []time.Duration
	for late := 0; len(took) < handovers && late < 3; {
		d := once()
		took = append(took, d)
		if d > wakeLimit {
			late++
			t.Errorf("hand-over %d took %v, want it within %v, by message", len(took), round(d), wakeLimit)
		}
	}
	slices.Sort(took)
	return fmt.Sprintf("%d hand-overs, median %v, worst %v", len(took), round(took[len(took)/2]), round(took[len(took)-1]))
}

func round(d time.Duration) time.Duration { return d.Round(10 * time.Microsecond) }

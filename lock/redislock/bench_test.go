package redislock_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/redislock"
)

// Each caller takes and releases a lock of its own: through an engine with its
// own client, through one on a plain client, and through a Locker.
func BenchmarkCycle(b *testing.B) {
	own, plain := open(b), openOn(b, cluster(b))
	l := newLocker(b, own, lock.Config{})
	ways := []struct {
		name  string
		cycle func(ctx context.Context, key, owner string) error
	}{
		{"plain", withEngine(plain)},
		{"engine", withEngine(own)},
		{"locker", func(ctx context.Context, key, _ string) error {
			lease, err := l.Acquire(ctx, key)
			if err != nil {
				return err
			}
			return lease.Release(ctx)
		}},
	}
	for _, callers := range []int{1, 8, 16, 64, 1000} {
		for _, way := range ways {
			b.Run(fmt.Sprintf("%s/c=%d", way.name, callers), func(b *testing.B) {
				b.ReportAllocs()
				inParallel(b, callers, way.cycle)
			})
		}
	}
}

func withEngine(e *redislock.Engine) func(ctx context.Context, key, owner string) error {
	return func(ctx context.Context, key, owner string) error {
		h := lock.Request{Key: key, Owner: owner}
		if _, err := e.Acquire(ctx, h, ttl); err != nil {
			return err
		}
		return e.Release(ctx, h)
	}
}

func inParallel(b *testing.B, callers int, cycle func(ctx context.Context, key, owner string) error) {
	b.Helper()
	prefix := teststack.Key(b, "cycle")
	var begun atomic.Int64
	var wg sync.WaitGroup
	start := time.Now()
	for i := range callers {
		wg.Go(func() {
			key, owner := fmt.Sprint(prefix, i), fmt.Sprint("me:", i)
			for begun.Add(1) <= int64(b.N) {
				if err := cycle(b.Context(), key, owner); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64(b.N)/time.Since(start).Seconds(), "cycles/s")
}

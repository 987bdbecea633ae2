package lock_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/lockengine"
)

// yes is an engine that says yes and remembers nothing.
type yes struct{}

func (yes) Acquire(context.Context, lockengine.Request, time.Duration) (lockengine.Grant, error) {
	return lockengine.Grant{Token: 1, Place: lockengine.Place{Node: "memory", Slot: -1}}, nil
}

func (yes) Renew(_ context.Context, hs []lockengine.Request, _ time.Duration) []error {
	return make([]error, len(hs))
}

func (yes) Release(context.Context, lockengine.Request) error { return nil }

func (yes) Inspect(context.Context, string) (lockengine.Holder, error) {
	return lockengine.Holder{}, nil
}

func (yes) Close(context.Context) error { return nil }

// holdMany returns what each of many leases costs, and how many goroutines.
func holdMany(tb testing.TB, n int) (bytes, goroutines int) {
	tb.Helper()
	keys, leases := manyKeys(n), make([]*lock.Lease, n)
	l := newLocker(tb, yes{}, lock.Config{})
	before, running := heap(), runtime.NumGoroutine()
	for i, key := range keys {
		leases[i] = acquire(tb, l, key)
	}
	bytes, goroutines = (heap()-before)/n, runtime.NumGoroutine()-running
	for _, lease := range leases {
		release(tb, lease)
	}
	return bytes, goroutines
}

func heap() int {
	runtime.GC()
	runtime.GC() // for what was pooled
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int(stats.HeapAlloc)
}

func TestLeasesAreSmall(t *testing.T) {
	bytes, goroutines := holdMany(t, 100_000)
	t.Logf("%d bytes per lease", bytes)
	if bytes > 500 {
		t.Errorf("%d bytes per lease, want at most 500", bytes)
	}
	if goroutines != 0 {
		t.Errorf("%d goroutines for 100,000 leases, want none", goroutines)
	}
}

func BenchmarkAcquireRelease(b *testing.B) {
	l := newLocker(b, yes{}, lock.Config{})
	b.ReportAllocs()
	for b.Loop() {
		release(b, acquire(b, l, "k"))
	}
}

// One key, many callers: what a hand-over costs.
func BenchmarkHandOver(b *testing.B) {
	l := newLocker(b, yes{}, lock.Config{HandOver: time.Hour})
	b.ReportAllocs()
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			lease, err := l.Acquire(b.Context(), "k")
			if err != nil {
				b.Error(err)
				return
			}
			release(b, lease)
		}
	})
}

func BenchmarkWaitAcquireRelease(b *testing.B) {
	l := newLocker(b, yes{}, lock.Config{})
	b.ReportAllocs()
	for b.Loop() {
		lease, err := l.Acquire(b.Context(), "k")
		if err != nil {
			b.Fatal(err)
		}
		release(b, lease)
	}
}

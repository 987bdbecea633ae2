package etcdlock_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/lock"
)

// Each caller takes and releases a lock of its own: by the engine, and by the mutex of
// etcd's client, with one session for all callers.
func BenchmarkCycle(b *testing.B) {
	for _, callers := range []int{1, 64} {
		b.Run(fmt.Sprintf("engine/c=%d", callers), func(b *testing.B) {
			e := open(b, prefix(b), teststack.Etcd(b))
			inParallel(b, callers, func(i int) error {
				r := lock.Request{Key: fmt.Sprint("cycle", i), Owner: fmt.Sprint("me:", i)}
				if _, err := e.Acquire(b.Context(), r, ttl); err != nil {
					return err
				}
				return e.Release(b.Context(), r)
			})
		})
		b.Run(fmt.Sprintf("mutex/c=%d", callers), func(b *testing.B) {
			session, err := concurrency.NewSession(newClient(b, teststack.Etcd(b)), concurrency.WithTTL(int(ttl.Seconds())))
			if err != nil {
				b.Fatal(err)
			}
			defer session.Close()
			p := prefix(b)
			inParallel(b, callers, func(i int) error {
				m := concurrency.NewMutex(session, fmt.Sprint(p, "cycle", i))
				if err := m.Lock(b.Context()); err != nil {
					return err
				}
				return m.Unlock(b.Context())
			})
		})
	}
}

// inParallel has the callers share b.N cycles.
func inParallel(b *testing.B, callers int, cycle func(caller int) error) {
	b.Helper()
	var begun atomic.Int64
	var wg sync.WaitGroup
	b.ResetTimer()
	start := time.Now()
	for i := range callers {
		wg.Go(func() {
			for begun.Add(1) <= int64(b.N) {
				if err := cycle(i); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64(b.N)/time.Since(start).Seconds(), "cycles/s")
}

package zklock_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/lock"
)

// BenchmarkCycle acquires and releases, each caller a key of its own, beside the recipe of
// another client.
func BenchmarkCycle(b *testing.B) {
	servers := teststack.ZooKeeper(b)
	for _, callers := range []int{1, 64} {
		b.Run(fmt.Sprintf("zklock/%d", callers), func(b *testing.B) {
			e := open(b, root(b), servers)
			cycles(b, callers, func(caller int) error {
				r := lock.Request{Key: fmt.Sprint("bench", caller), Owner: fmt.Sprint("me:", caller)}
				if _, err := e.Acquire(context.Background(), r, ttl); err != nil {
					return err
				}
				return e.Release(context.Background(), r)
			})
		})
		b.Run(fmt.Sprintf("recipe/%d", callers), func(b *testing.B) {
			client, r := dial(b, servers), root(b)
			cycles(b, callers, func(caller int) error {
				l := zk.NewLock(client, fmt.Sprint(r, "-", caller), zk.WorldACL(zk.PermAll))
				if err := l.Lock(); err != nil {
					return err
				}
				return l.Unlock()
			})
		})
	}
}

// cycles runs b.N cycles by callers beside each other.
func cycles(b *testing.B, callers int, cycle func(caller int) error) {
	b.Helper()
	for i := range callers { // the folders are there afterwards
		if err := cycle(i); err != nil {
			b.Fatal(err)
		}
	}
	b.ResetTimer()
	var n atomic.Int64
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			for n.Add(1) <= int64(b.N) {
				if err := cycle(i); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "cycles/s")
}

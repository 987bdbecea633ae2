package sqllock_test

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/lock/redislock"
	"github.com/belaygo/belay/lock/sqllock"
)

// Each caller takes and releases a lock of its own: in each database, and in Redis.
func BenchmarkCycle(b *testing.B) {
	engines := map[string]func(b *testing.B) lockengine.Engine{
		"redis": func(b *testing.B) lockengine.Engine {
			b.Helper()
			e, err := redislock.Open(&redis.UniversalOptions{Addrs: teststack.Redis(b), IsClusterMode: true}, redislock.Config{})
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { _ = e.Close(context.Background()) })
			return e
		},
	}
	for name, dsn := range map[string]func(testing.TB) string{"mysql": teststack.MySQL, "postgres": teststack.Postgres, "sqlite": durableFile} {
		if name == "postgres" && os.Getenv("BELAY_POSTGRES_DSN") == "" {
			continue
		}
		engines[name] = func(b *testing.B) lockengine.Engine {
			b.Helper()
			dsn := dsn(b)
			migrate(b, dsn)
			return open(b, dsn)
		}
	}
	for name, engine := range engines {
		for _, callers := range []int{1, 64} {
			b.Run(fmt.Sprintf("%s/c=%d", name, callers), func(b *testing.B) {
				inParallel(b, engine(b), callers)
			})
		}
	}
}

func inParallel(b *testing.B, e lockengine.Engine, callers int) {
	b.Helper()
	prefix := teststack.Key(b, "cycle")
	var begun atomic.Int64
	var wg sync.WaitGroup
	b.ResetTimer()
	start := time.Now()
	for i := range callers {
		wg.Go(func() {
			r := lockengine.Request{Key: fmt.Sprint(prefix, i), Owner: fmt.Sprint("me:", i)}
			for begun.Add(1) <= int64(b.N) {
				_, err := e.Acquire(b.Context(), r, ttl)
				if err == nil {
					err = e.Release(b.Context(), r)
				}
				if err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64(b.N)/time.Since(start).Seconds(), "cycles/s")
}

// Callers wait for as many keys: what looking for them costs the database.
func BenchmarkPoller(b *testing.B) {
	for _, keys := range []int{0, 1, 100} {
		b.Run(fmt.Sprintf("keys=%d", keys), func(b *testing.B) {
			dsn := teststack.MySQL(b)
			migrate(b, dsn)
			e := open(b, dsn)
			var polls atomic.Int64
			sqllock.OnPoll(e, func(int) { polls.Add(1) })
			for i := range keys {
				r := lockengine.Request{Key: fmt.Sprint("k", i), Owner: "me:1"}
				acquire(b, e, r, time.Hour)
				stop, err := e.Watch(b.Context(), r.Key, func() {})
				if err != nil {
					b.Fatal(err)
				}
				defer stop()
			}
			const window = 5 * time.Second
			before := polls.Load()
			<-time.After(window)
			b.ReportMetric(float64(polls.Load()-before)/window.Seconds(), "statements/s")
		})
	}
}

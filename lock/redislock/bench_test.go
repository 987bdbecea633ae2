package redislock_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/lockengine"
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

func withEngine(e redislock.Engine) func(ctx context.Context, key, owner string) error {
	return func(ctx context.Context, key, owner string) error {
		h := lockengine.Request{Key: key, Owner: owner}
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

// How long it takes from before a DEL is sent to the end of the holder's context.
func BenchmarkLossReported(b *testing.B) {
	kinds := map[string]*redis.UniversalOptions{
		"single":   {Addrs: []string{teststack.StartRedis(b, teststack.Volatile).Addr}},
		"sentinel": {Addrs: startPair(b).sentinels, MasterName: "locks"},
		"cluster":  {Addrs: teststack.Redis(b), IsClusterMode: true},
	}
	for kind, opts := range kinds {
		b.Run(kind, func(b *testing.B) {
			c := redis.NewUniversalClient(opts)
			defer c.Close()
			e := openWith(b, opts)
			leases := holdTracked(b, e, newLocker(b, e, lock.Config{TTL: longTTL}), numbered(teststack.Key(b, "loss"), b.N)...)
			took := make([]time.Duration, 0, b.N)
			b.ResetTimer()
			for _, l := range leases {
				start := time.Now()
				if err := c.Del(b.Context(), l.Grant().Key).Err(); err != nil {
					b.Fatal(err)
				}
				<-l.Context().Done()
				took = append(took, time.Since(start))
			}
			b.StopTimer()
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
		})
	}
}

// The processor time of a renewal while many locks are held, in the server and in this
// process, which is the server's client. -benchtime 100000x holds 100,000 locks.
func BenchmarkRenew(b *testing.B) {
	server := teststack.StartRedis(b, teststack.Volatile)
	for name, cfg := range map[string]redislock.Config{"loss-reported": {}, "loss-found": {NoTracking: true}} {
		b.Run(name, func(b *testing.B) {
			e := &renewals{Engine: openWith(b, &redis.UniversalOptions{Addrs: []string{server.Addr}}, cfg), done: make(chan struct{})}
			acquireAll(b, newLocker(b, e, lock.Config{}), numbered(teststack.Key(b, "renew"), b.N)...)
			if !cfg.NoTracking {
				waitTracked(b, e.Engine, b.N)
			}
			theirs, ours := serverTime(b, server), processTime(b)
			b.ResetTimer()
			e.left.Store(int64(b.N))
			<-e.done
			b.StopTimer()
			b.ReportMetric(micros(serverTime(b, server)-theirs)/float64(b.N), "server-µs/renewal")
			b.ReportMetric(micros(processTime(b)-ours)/float64(b.N), "client-µs/renewal")
			if n := e.failed.Load(); n > 0 {
				b.Errorf("%d renewals failed: the figures are not those of a renewal", n)
			}
		})
	}
}

// A renewals is an engine that counts renewals.
type renewals struct {
	redislock.Engine
	left, failed atomic.Int64
	done         chan struct{} // closed when left comes down to 0
}

func (r *renewals) Renew(ctx context.Context, rs []lockengine.Request, ttl time.Duration) []error {
	errs := r.Engine.Renew(ctx, rs, ttl)
	for _, err := range errs {
		switch {
		case err != nil:
			r.failed.Add(1)
		case r.left.Add(-1) == 0:
			close(r.done)
		}
	}
	return errs
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// serverTime returns the processor time that a server has used.
func serverTime(b *testing.B, server *teststack.RedisServer) (sum time.Duration) {
	b.Helper()
	info := server.Do("info", "cpu").String()
	for _, name := range []string{"used_cpu_sys:", "used_cpu_user:"} {
		_, text, _ := strings.Cut(info, name)
		line, _, _ := strings.Cut(text, "\r\n")
		seconds, err := strconv.ParseFloat(line, 64)
		if err != nil {
			b.Fatal(err)
		}
		sum += time.Duration(seconds * float64(time.Second))
	}
	return sum
}

// processTime returns the processor time that this process has used.
func processTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

package redislock_test

import (
	"context"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/redislock"
)

// Three processes with many callers each count up one number that nothing but
// the lock protects.
func TestLockersExclude(t *testing.T) {
	const processes, callers, rounds = 3, 8, 5
	key := teststack.Key(t, "counter")
	count := 0
	var mu sync.Mutex // for the race detector, which does not know Redis
	var wg sync.WaitGroup
	for range processes {
		l := newLocker(t, open(t), lock.Config{})
		for range callers {
			wg.Go(func() {
				for range rounds {
					lease, err := l.Acquire(t.Context(), key)
					if err != nil {
						t.Errorf("Acquire: %v", err)
						return
					}
					mu.Lock()
					seen := count
					mu.Unlock()
					runtime.Gosched()
					mu.Lock()
					count = seen + 1
					mu.Unlock()
					if err := lease.Release(t.Context()); err != nil {
						t.Errorf("Release: %v", err)
					}
				}
			})
		}
	}
	wg.Wait()
	if want := processes * callers * rounds; count != want {
		t.Errorf("counted %d, want %d", count, want)
	}
}

func TestDeletedLockEndsLease(t *testing.T) {
	l := newLocker(t, open(t), lock.Config{TTL: 600 * time.Millisecond, RequestTimeout: 500 * time.Millisecond})
	key := teststack.Key(t, "deleted")
	lease, err := l.Acquire(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	cluster(t).Del(t.Context(), key)
	select {
	case <-lease.Context().Done():
		wantIs(t, context.Cause(lease.Context()), lock.ErrLost)
	case <-time.After(limit):
		t.Error("the lease goes on")
	}
	wantIs(t, lease.Release(t.Context()), lock.ErrLost)
}

// The answer to an acquire gets lost on its way, the acquire itself does not:
// the Locker frees what it may have taken.
func TestAnswerLost(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	proxy := newProxy(t, teststack.Redis(t)[0])
	l := newLocker(t, openThrough(t, proxy), lock.Config{})
	key := teststack.Key(t, "lost answer")
	lockAndRelease(t, l, key) // there is a connection now

	sub := cluster(t).SSubscribe(ctx, "redisson_lock__channel:{"+key+"}")
	defer sub.Close()
	if _, err := sub.Receive(ctx); err != nil { // it is subscribed
		t.Fatal(err)
	}
	proxy.swallow.Store(true)
	if _, err := l.TryAcquire(ctx, key); err == nil {
		t.Fatal("an acquire without an answer was granted")
	}
	proxy.swallow.Store(false)
	if _, err := sub.ReceiveMessage(ctx); err != nil {
		t.Fatalf("the lock was not taken and released: %v", err)
	}
	lockAndRelease(t, newLocker(t, open(t), lock.Config{}), key)
}

func lockAndRelease(tb testing.TB, l *lock.Locker, key string) {
	tb.Helper()
	lease, err := l.TryAcquire(tb.Context(), key)
	if err != nil {
		tb.Fatal(err)
	}
	if err := lease.Release(tb.Context()); err != nil {
		tb.Fatal(err)
	}
}

// TestLocate: where a lock is kept is known.
func TestLocate(t *testing.T) {
	e := open(t)
	l := newLocker(t, e, lock.Config{})
	for _, name := range []string{"a", "b", "c", "d"} {
		key := teststack.Key(t, name)
		lease, err := l.TryAcquire(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		if p := e.Locate(key); p != lease.Grant().Place || p.Slot < 0 {
			t.Errorf("Locate(%q) = %+v, granted at %+v", key, p, lease.Grant().Place)
		}
		if err := lease.Release(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// TestLocateAsksNobody: before the first slot map, only the slot is known.
func TestLocateAsksNobody(t *testing.T) {
	n := newNode(t)
	n.reply = func([]string) string { return granted["acquire"] }
	for name, open := range map[string]func(*redis.UniversalOptions) redislock.Engine{
		"own client": func(o *redis.UniversalOptions) redislock.Engine { return openWith(t, o) },
		"the user's client": func(o *redis.UniversalOptions) redislock.Engine {
			c := redis.NewClusterClient(o.Cluster())
			t.Cleanup(func() { _ = c.Close() })
			return openOn(t, c)
		},
	} {
		t.Run(name, func(t *testing.T) {
			var dials atomic.Int64
			opts := options(n.addr)
			opts.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
				dials.Add(1)
				return new(net.Dialer).DialContext(ctx, network, addr)
			}
			e := open(opts)
			at := e.Locate(hold.Key)
			if at.Node != "" || at.Slot < 0 {
				t.Errorf("Locate = %+v, want the slot alone", at)
			}
			if n := dials.Load(); n != 0 {
				t.Errorf("%d dials", n)
			}
			at.Node = n.addr
			if grant := acquire(t, e, hold); grant.Place != at {
				t.Errorf("granted at %+v, want %+v", grant.Place, at)
			}
			if p := e.Locate(hold.Key); p != at {
				t.Errorf("Locate = %+v, want %+v", p, at)
			}
		})
	}
}

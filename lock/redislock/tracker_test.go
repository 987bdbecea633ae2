package redislock_test

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"github.com/belaygo/belay/internal/testlog"
	"github.com/belaygo/belay/internal/testmetric"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/lock/redislock"
)

// longTTL has no renewal fall into a test: what ends a lease is what the server reports.
const longTTL = 24 * time.Hour

// holdTracked acquires locks, and waits until the servers report their loss.
func holdTracked(tb testing.TB, e redislock.Engine, l *lock.Locker, keys ...string) []*lock.Lease {
	tb.Helper()
	leases := acquireAll(tb, l, keys...)
	waitTracked(tb, e, len(keys))
	return leases
}

// acquireAll acquires locks, many at a time.
func acquireAll(tb testing.TB, l *lock.Locker, keys ...string) []*lock.Lease {
	tb.Helper()
	leases := make([]*lock.Lease, len(keys))
	var acquired errgroup.Group
	acquired.SetLimit(100)
	for i, key := range keys {
		acquired.Go(func() (err error) {
			leases[i], err = l.Acquire(tb.Context(), key)
			return err
		})
	}
	if err := acquired.Wait(); err != nil {
		tb.Fatal(err)
	}
	return leases
}

func numbered(prefix string, n int) (keys []string) {
	for i := range n {
		keys = append(keys, prefix+strconv.Itoa(i))
	}
	return keys
}

func waitTracked(tb testing.TB, e redislock.Engine, n int) {
	tb.Helper()
	testwait.Until(tb, fmt.Sprint(n, " locks are tracked"), func() bool { return tracked(tb, e) == n })
}

func tracked(tb testing.TB, e redislock.Engine) int {
	tb.Helper()
	return int(testmetric.Sum(tb, e, "belay_redis_tracked"))
}

func wantLost(tb testing.TB, leases ...*lock.Lease) {
	tb.Helper()
	end := time.After(2 * limit)
	for _, l := range leases {
		select {
		case <-l.Context().Done():
		case <-end:
			tb.Fatalf("the lease on %s has not ended", l.Grant().Key)
		}
		wantIs(tb, context.Cause(l.Context()), lock.ErrLost)
	}
}

func wantHolding(tb testing.TB, leases ...*lock.Lease) {
	tb.Helper()
	for _, l := range leases {
		if err := l.Err(); err != nil {
			tb.Errorf("a lease has ended: %v", err)
		}
	}
}

// losses are ways in which a lock is lost that its server still executes.
var losses = map[string][]any{
	"deleted":                         {"del"},
	"unlinked":                        {"unlink"},
	"overwritten":                     {"set", "x"},
	"its field is deleted":            {"hdel", "OWNER"},
	"set to expire":                   {"pexpire", 20},
	"emptied, and another's":          {"eval", "redis.call('del', KEYS[1]) return redis.call('hset', KEYS[1], 'they:1', 1)", 1},
	"deleted, and another's, at once": {"eval", "redis.call('hset', KEYS[1], 'they:1', 1) return redis.call('hdel', KEYS[1], ARGV[1])", 1, "OWNER"},
}

// loss returns a command of losses for the lock that lease is on.
func loss(args []any, lease *lock.Lease) (full []any) {
	at := 1
	if args[0] == "eval" {
		at = 3
	}
	full = append(append(full, args[:at]...), lease.Grant().Key)
	full = append(full, args[at:]...)
	if full[len(full)-1] == "OWNER" {
		full[len(full)-1] = lease.Grant().Owner
	}
	return full
}

// No renewal is near.
func TestLossIsReported(t *testing.T) {
	t.Parallel()
	server := teststack.StartRedis(t, teststack.Volatile)
	for kind, addrs := range map[string][]string{"single": {server.Addr}, "cluster": teststack.Redis(t)} {
		t.Run(kind, func(t *testing.T) {
			opts := &redis.UniversalOptions{Addrs: addrs, IsClusterMode: kind == "cluster"}
			c := redis.NewUniversalClient(opts)
			defer c.Close()
			e := openWith(t, opts)
			l := newLocker(t, e, lock.Config{TTL: longTTL})
			var all []*lock.Lease
			for name, args := range losses {
				leases := holdTracked(t, e, l, teststack.Key(t, name), teststack.Key(t, name+"2"))
				if err := c.Do(t.Context(), loss(args, leases[0])...).Err(); err != nil {
					t.Errorf("%s: %v", name, err)
				}
				wantLost(t, leases[0])
				wantHolding(t, leases[1])
				release(t, e, lockengine.Request{Key: leases[1].Grant().Key, Owner: leases[1].Grant().Owner})
				wantLost(t, leases[1])
				all = append(all, leases...)
			}
			if n := testmetric.Sum(t, l, "belay_lock_lost_total", "reason", "push"); int(n) != len(all) {
				t.Errorf("%v losses are counted as reported, want %d", n, len(all))
			}
			waitTracked(t, e, 0)
		})
	}
}

// With Open, with New, and as Sentinel's master.
func TestLossIsReportedToEachClient(t *testing.T) {
	t.Parallel()
	server := teststack.StartRedis(t, teststack.Volatile)
	client := redis.NewClient(&redis.Options{Addr: server.Addr, ReadTimeout: -1})
	defer client.Close()
	p := startPair(t)
	for name, c := range map[string]struct {
		e      redislock.Engine
		server *teststack.RedisServer
	}{
		"New":      {openOn(t, client), server},
		"Sentinel": {openSentinel(t, p.sentinels), p.master},
		"prefix":   {openWith(t, &redis.UniversalOptions{Addrs: []string{server.Addr}}, redislock.Config{Prefix: "app:"}), server},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLocker(t, c.e, lock.Config{TTL: longTTL})
			leases := holdTracked(t, c.e, l, name)
			c.server.Must("del", name, "app:"+name)
			wantLost(t, leases...)
		})
	}
}

// FLUSHALL is reported without names.
func TestFlushIsReported(t *testing.T) {
	t.Parallel()
	server := teststack.StartRedis(t, teststack.Volatile)
	e := openWith(t, &redis.UniversalOptions{Addrs: []string{server.Addr}})
	l := newLocker(t, e, lock.Config{TTL: longTTL})
	for range 2 {
		leases := holdTracked(t, e, l, numbered("k", 1200)...)
		server.Must("flushall")
		wantLost(t, leases...)
		for _, l := range leases {
			wantIs(t, l.Release(t.Context()), lock.ErrLost)
		}
	}
}

// What is lost while a connection is down is found with the next one.
func TestTrackingSurvivesItsConnections(t *testing.T) {
	t.Parallel()
	server := teststack.StartRedis(t, teststack.Volatile)
	e := openWith(t, &redis.UniversalOptions{Addrs: []string{server.Addr}})
	l := newLocker(t, e, lock.Config{TTL: longTTL})
	c := redis.NewClient(&redis.Options{Addr: server.Addr})
	defer c.Close()
	for _, kind := range []string{"pubsub", "normal"} {
		leases := holdTracked(t, e, l, "a", "b", "c")
		_, err := c.TxPipelined(t.Context(), func(p redis.Pipeliner) error {
			p.Do(t.Context(), "client", "kill", "type", kind, "skipme", "yes")
			p.Del(t.Context(), "a")
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		wantLost(t, leases[0])
		waitTracked(t, e, 2)
		server.Must("del", "b")
		wantLost(t, leases[1])
		wantHolding(t, leases[2])
		release(t, e, lockengine.Request{Key: "c", Owner: leases[2].Grant().Owner})
		wantLost(t, leases...)
	}
}

// A server that restarts empty has lost all locks.
func TestRestartIsReported(t *testing.T) {
	t.Parallel()
	server := teststack.StartRedis(t, teststack.Volatile)
	e := openWith(t, &redis.UniversalOptions{Addrs: []string{server.Addr}})
	leases := holdTracked(t, e, newLocker(t, e, lock.Config{TTL: longTTL}), "a", "b")
	server.Kill()
	server.Start()
	wantLost(t, leases...)
}

// A server that does not track keys keeps locks as before.
func TestTrackingIsRefused(t *testing.T) {
	t.Parallel()
	for name, rules := range map[string][]any{
		"no tracking": {"-client|tracking"},
		"no client":   {"-client"},
		"no channel":  {"resetchannels", "&redisson_lock__channel:*"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := teststack.StartRedis(t, teststack.Volatile)
			server.Must(append([]any{"acl", "setuser", "plain", "on", "nopass", "~*", "&*", "+@all"}, rules...)...)
			var log testlog.Buffer
			e := openWith(t, &redis.UniversalOptions{Addrs: []string{server.Addr}, Username: "plain", Password: "x"},
				redislock.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
			l := newLocker(t, e, lock.Config{TTL: 6 * time.Second})
			leases := []*lock.Lease{lease(t, l, "a"), lease(t, l, "b")}
			testwait.Until(t, "the refusal is logged", func() bool { return log.String() != "" })
			server.Must("del", "a")
			wantLost(t, leases[0])
			wantHolding(t, leases[1])
			if n := testmetric.Sum(t, l, "belay_lock_lost_total", "reason", "renewal"); n != 1 {
				t.Errorf("%v losses found at a renewal, want 1", n)
			}
			if lines := strings.Count(log.String(), "\n"); lines != 1 || !strings.Contains(log.String(), "NOPERM") {
				t.Errorf("%d lines are logged, want one with the reason:\n%s", lines, &log)
			}
		})
	}
}

func TestNoTracking(t *testing.T) {
	t.Parallel()
	server := teststack.StartRedis(t, teststack.Volatile)
	e := openWith(t, &redis.UniversalOptions{Addrs: []string{server.Addr}}, redislock.Config{NoTracking: true})
	l := newLocker(t, e, lock.Config{TTL: 3 * time.Second})
	held := lease(t, l, "a")
	deadline := held.Grant().Deadline
	testwait.Until(t, "the lock is renewed", func() bool { return held.Grant().Deadline.After(deadline) })
	if clients := fmt.Sprint(server.Do("client", "list").Val()); strings.Contains(clients, "sub=1") {
		t.Errorf("a connection is subscribed:\n%s", clients)
	}
	server.Must("del", "a")
	wantLost(t, held)
}

// A server that tracks fewer keys than there are locks reports one with each lock that it
// is asked for: neither a loss, nor the beginning of an endless loop.
func TestServerTracksFewKeys(t *testing.T) {
	t.Parallel()
	server := teststack.StartRedis(t, teststack.Volatile+"tracking-table-max-keys 10\n")
	e := openWith(t, &redis.UniversalOptions{Addrs: []string{server.Addr}})
	l := newLocker(t, e, lock.Config{TTL: longTTL})
	leases := holdTracked(t, e, l, numbered("k", 100)...)
	start := time.Now()
	first := checks(t, server)
	testwait.Until(t, "locks are checked again and again", func() bool { return checks(t, server)-first > 800 })
	n := checks(t, server) - first
	// 512 at once, then 256 a second, and a batch that is under way.
	if most := 512 + int(256*time.Since(start).Seconds()) + 200; n > most {
		t.Errorf("%d checks in %v, want at most %d", n, time.Since(start), most)
	}
	wantHolding(t, leases...)
	server.Must("del", "k7")
	wantLost(t, leases[7])
}

// checks returns how many locks the server was asked for by trackers, and few others.
func checks(tb testing.TB, server *teststack.RedisServer) (n int) {
	tb.Helper()
	info := fmt.Sprint(server.Do("info", "commandstats").Val())
	_, text, _ := strings.Cut(info, "cmdstat_hexists:calls=")
	_, _ = fmt.Sscan(text, &n)
	return n
}

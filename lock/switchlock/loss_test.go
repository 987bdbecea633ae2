package switchlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/belaygo/belay/internal/testmetric"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/lock/redislock"
	"github.com/belaygo/belay/lock/switchlock"
)

// rareTTL is that of locks whose first renewal by time comes after a test has ended.
const rareTTL = 15 * time.Minute

// A redisPair is an engine between two Redis servers, with a lease on the key k.
type redisPair struct {
	old, new *teststack.RedisServer
	locker   *lock.Locker
	lease    *lock.Lease
}

func newRedisPair(t *testing.T, record switchlock.Record) redisPair {
	t.Helper()
	p := redisPair{old: startRedis(t), new: startRedis(t)}
	engines := make(map[string]lockengine.Engine)
	for name, s := range map[string]*teststack.RedisServer{"old": p.old, "new": p.new} {
		e, err := redislock.Open(&redis.UniversalOptions{Addrs: []string{s.Addr}}, redislock.Config{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = e.Close(context.Background()) })
		engines[name] = e
	}
	p.locker = newLocker(t, open(t, switchlock.Config{Source: &store{record: record}, Engines: engines, First: "old"}), rareTTL)
	lease, err := p.locker.Acquire(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	p.lease = lease
	return p
}

func (p redisPair) wantReported(t *testing.T) {
	t.Helper()
	if n := testmetric.Sum(t, p.locker, "belay_lock_lost_total", "reason", "push"); n != 1 {
		t.Errorf("%v losses are counted as reported, want 1", n)
	}
}

// A lock that is deleted is lost long before its next renewal.
func TestLossIsReported(t *testing.T) {
	t.Parallel()
	p := newRedisPair(t, switchlock.Record{Epoch: 1, From: "old", To: "old", Settled: true, Lease: lease, TTL: longest})
	p.old.Must("del", "k")
	eventually(t, "the lease ends", func() bool { return p.lease.Err() != nil })
	p.wantReported(t)
}

// While locks move, one that is deleted in one engine is acquired there again, and one that is
// deleted in both is lost.
func TestLossIsReportedWhileLocksMove(t *testing.T) {
	t.Parallel()
	p := newRedisPair(t, unending())
	for _, s := range []*teststack.RedisServer{p.old, p.new} {
		s.Must("del", "k")
		eventually(t, "acquired again", func() bool { return s.Do("exists", "k").Val() == int64(1) })
	}
	eventually(t, "the lease ends", func() bool {
		p.old.Must("del", "k") // once more if a renewal has come between the two
		p.new.Must("del", "k")
		return p.lease.Err() != nil
	})
	p.wantReported(t)
}

package quorumlock_test

import (
	"testing"
	"time"

	"github.com/belaygo/belay/internal/testmetric"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/lock/memlock"
)

// rareTTL is that of locks whose first renewal by time comes after a test has ended.
const rareTTL = 15 * time.Minute

// hasLock reports whether the server has mine.Key for owner.
func hasLock(s *teststack.RedisServer, owner string) bool {
	held, _ := s.Do("hexists", mine.Key, owner).Val().(int64)
	return held == 1
}

// A lock that is deleted at all nodes is lost long before its next renewal.
func TestLossIsReported(t *testing.T) {
	t.Parallel()
	servers := startServers(t)
	e := open(t, durable, addrs(servers)...)
	l := newLocker(t, e, rareTTL)
	lease, err := l.Acquire(t.Context(), mine.Key)
	if err != nil {
		t.Fatal(err)
	}
	testwait.Until(t, "the lease ends", func() bool {
		for _, s := range servers { // once more if a renewal has come between two of them
			s.Must("del", mine.Key)
		}
		return lease.Err() != nil
	})
	wantIs(t, lease.Err(), lock.ErrLost)
	if n := testmetric.Sum(t, l, "belay_lock_lost_total", "reason", "push"); n != 1 {
		t.Errorf("%v losses are counted as reported, want 1", n)
	}
}

// A lock that is deleted at a minority is not lost: the report brings the renewal forward, which
// gives it to these nodes again.
func TestMinorityThatReportsIsFilled(t *testing.T) {
	t.Parallel()
	servers := startServers(t)
	l := newLocker(t, open(t, durable, addrs(servers)...), rareTTL)
	lease, err := l.Acquire(t.Context(), mine.Key)
	if err != nil {
		t.Fatal(err)
	}
	owner := lease.Grant().Owner
	for range 3 {
		testwait.Until(t, "all nodes have the lock", func() bool {
			for _, s := range servers {
				if !hasLock(s, owner) {
					return false
				}
			}
			return true
		})
		before := lease.Grant().Deadline
		for _, s := range servers[:2] {
			s.Must("del", mine.Key)
		}
		testwait.Until(t, "it is renewed", func() bool { return lease.Grant().Deadline.After(before) })
	}
	if err := lease.Release(t.Context()); err != nil {
		t.Errorf("Release: %v", err)
	}
}

// A reporter is a node that keeps the reports of losses.
type reporter struct {
	lockengine.Engine
	lost    func()
	stopped bool
}

func (r *reporter) WatchLoss(_ lockengine.Request, lost func()) (stop func()) {
	r.lost = lost
	return func() { r.stopped = true }
}

// Nodes that report nothing, or panic, are no matter to the others.
func TestLossIsWatchedWhereItCanBe(t *testing.T) {
	a, b := &reporter{Engine: memlock.New()}, &reporter{Engine: memlock.New()}
	e := over(t, a, memlock.New(), panics{memlock.New()}, b, memlock.New())
	reports := 0
	stop := e.WatchLoss(mine, func() { reports++ })
	a.lost()
	b.lost()
	if reports != 2 {
		t.Errorf("%d reports arrived, want 2", reports)
	}
	stop()
	if !a.stopped || !b.stopped {
		t.Error("a watch goes on")
	}
}

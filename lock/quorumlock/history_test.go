package quorumlock_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/belaygo/belay/internal/lockhistory"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/lock/locktest"
)

// Two of five servers stand still or can't be reached for longer than the ttl, or are killed
// and start again without their locks: the others have them, but for locks that a bare majority
// has granted, as happens when callers compete: these are lost with a server of that majority.
// Three can't be reached: nobody gets a lock that another believes in.
func TestHistory(t *testing.T) {
	t.Parallel()
	servers := startServers(t)
	var links []*locktest.Link
	var reach []string
	for _, s := range servers {
		k := locktest.NewLink(t, s.Addr)
		links, reach = append(links, k), append(reach, k.Addr)
	}
	grow(t, servers, 20*time.Second)
	two := servers[1:3]
	lockhistory.Test(t, lockhistory.Setup{
		Where:  where(restarts, reach),
		Key:    func(name string) string { return name },
		Engine: open(t, restarts, reach...),
		Breaks: []lockhistory.Break{
			lockhistory.Outage("minority paused", func(*testing.T) func() {
				each(two, (*teststack.RedisServer).Pause)
				return func() { each(two, (*teststack.RedisServer).Resume) }
			}),
			lockhistory.CutOff("minority cut off", links[:2]...),
			lockhistory.CutOff("majority cut off", links[:3]...),
			{Name: "minority killed", Forgets: "quorum", Do: func(*testing.T) {
				each(two, (*teststack.RedisServer).Kill)
				each(two, (*teststack.RedisServer).Start)
			}},
		},
	})
}

// The clock of one of five servers is set. Forward, it takes locks away that this server has
// granted with no more than two others, as happens when callers compete; holders learn of it.
// Back, it takes none away. A token is wrong by as much as that clock.
func TestHistoryOfAClock(t *testing.T) {
	servers, clock := startServers(t), teststack.NewClock(t)
	last := servers[4]
	last.Kill()
	last.Env = clock.Env
	last.Start()
	grow(t, servers, lockhistory.StoreTTL)
	children := lockhistory.StartAll(t, lockhistory.Job{
		Where: where(restarts, addrs(servers)), Keys: []string{"clock0", "clock1", "clock2", "clock3"},
		Workers: 16, Hold: 2 * time.Millisecond, TTL: lockhistory.StoreTTL,
	})
	spans := lockhistory.Observe(t, children, 50)
	forward := lockhistory.Fault{Node: "quorum", Begin: lockhistory.Now(), Skew: 2 * time.Hour}
	last.SetClock(clock, time.Hour)
	forward.End = lockhistory.Now()
	spans = append(spans, lockhistory.ObserveAfter(t, children, forward.End)...)
	last.SetClock(clock, -time.Hour)
	spans = append(spans, lockhistory.ObserveAfter(t, children, lockhistory.Now())...)
	for _, c := range children {
		c.Stop()
	}
	lost := 0
	for _, c := range children {
		spans = append(spans, c.Finish()...)
	}
	for _, s := range spans {
		if s.End == lockhistory.Lost {
			lost++
		}
	}
	for _, wrong := range lockhistory.Judge(spans, forward) {
		t.Error(wrong)
	}
	t.Logf("%d holds, %d lost, %d overlaps", len(spans), lost, lockhistory.Overlaps(spans))
}

func each(servers []*teststack.RedisServer, f func(*teststack.RedisServer)) {
	for _, s := range servers {
		f(s)
	}
}

// grow waits until the servers have been up for longer than a ttl, by whole seconds.
func grow(t *testing.T, servers []*teststack.RedisServer, ttl time.Duration) {
	t.Helper()
	for _, s := range servers {
		up(t, s, ttl+2*time.Second)
	}
}

const restartTTL = 6 * time.Second

// Three of five servers are started again, empty, one after the other within a ttl. They
// do not vote for a ttl after that; so nobody gets a lock that another believes in. Without
// the rule two believe in it. They report no losses: reports would have each server filled again
// before the next one is started.
func TestHistoryOfRestarts(t *testing.T) {
	t.Parallel()
	t.Run("Rule", func(t *testing.T) {
		t.Parallel()
		if n, held := restartHistory(t, restarts); n > 0 || held == 0 {
			t.Errorf("%d overlaps, %d holds after the restarts", n, held)
		}
	})
	t.Run("NoRule", func(t *testing.T) {
		t.Parallel()
		if n, _ := restartHistory(t, durable); n == 0 {
			t.Error("no overlap: the test would not notice if the rule were off")
		}
	})
}

// restartHistory returns how many overlaps there were, and how many holds began after the
// last restart.
func restartHistory(t *testing.T, rule string) (overlaps, after int) {
	t.Helper()
	servers := startServers(t)
	if rule == restarts {
		grow(t, servers, restartTTL)
	}
	keys := make([]string, 8)
	for i := range keys {
		keys[i] = fmt.Sprint("restart", i)
	}
	children := lockhistory.StartAll(t, lockhistory.Job{
		Where: where(unreported+" "+rule, addrs(servers)), Keys: keys, Workers: len(keys), Hold: restartTTL / 2, TTL: restartTTL,
	})
	spans := lockhistory.Observe(t, children, 2)
	begin := lockhistory.Now()
	for _, s := range servers[:3] {
		s.Kill()
		s.Start()
	}
	last := lockhistory.Now()
	if rule == restarts { // what was lost comes first
		spans = append(spans, lockhistory.ObserveAfter(t, children, last)...)
	} else {
		spans = append(spans, lockhistory.Observe(t, children, 6)...)
	}
	for _, c := range children {
		c.Stop()
	}
	for _, c := range children {
		spans = append(spans, c.Finish()...)
	}
	for _, s := range spans {
		if s.Err == "" && s.Got > last {
			after++
		}
	}
	overlaps = lockhistory.Overlaps(spans)
	t.Logf("%d holds, %d of them after the restarts, %d overlaps", len(spans), after, overlaps)
	if rule != restarts {
		return overlaps, after
	}
	// Locks whose majority was started again are lost, and their holders know.
	for _, wrong := range lockhistory.Judge(spans, lockhistory.Fault{Node: "quorum", Begin: begin, End: last}) {
		t.Error(wrong)
	}
	return overlaps, after
}

// All servers are started again, one after the other: each as soon as renewals have filled
// the one before. No lock is lost.
func TestRollingRestart(t *testing.T) {
	t.Parallel()
	const ttl, locks = 6 * time.Second, 8
	servers := startServers(t)
	grow(t, servers, ttl)
	l, err := lock.New(open(t, restarts, addrs(servers)...), lock.Config{TTL: ttl})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close(context.Background())
	var leases []*lock.Lease
	for i := range locks {
		lease, err := l.Acquire(t.Context(), fmt.Sprint("rolling", i))
		if err != nil {
			t.Fatal(err)
		}
		leases = append(leases, lease)
	}
	for _, s := range servers {
		s.Kill()
		s.Start()
		testwait.Until(t, "the server has all locks again", func() bool { return s.Do("dbsize").Val() == int64(locks) })
	}
	for _, lease := range leases {
		if err := errors.Join(lease.Err(), lease.Release(t.Context())); err != nil {
			t.Error(err)
		}
	}
}

// One of three servers is started again, empty, with a clock that is behind and is set right then,
// as after a boot. It votes no earlier for that, so that no two believe in one lock.
func TestRestartBeforeItsClockIsSet(t *testing.T) {
	const ttl = 2 * time.Second
	servers, clock := startServers(t)[:3], teststack.NewClock(t)
	last := servers[2]
	last.Env = clock.Env
	grow(t, servers, ttl)
	cutOff := append([]string{"127.0.0.1:1"}, addrs(servers[1:])...)
	a, b := newLocker(t, open(t, restarts, cutOff...), ttl), newLocker(t, open(t, restarts, addrs(servers)...), ttl)
	warm, err := b.Acquire(t.Context(), "warm") // b knows the server that is started again
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = warm.Release(context.Background()) }()
	held, err := a.Acquire(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	clock.Set(-time.Hour)
	last.Kill()
	last.Start()
	last.SetClock(clock, 0)
	up(t, last, ttl)
	other, err := b.Acquire(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	if held.Err() == nil {
		t.Errorf("two believe in the lock: %+v and %+v", held.Grant(), other.Grant())
	}
	if err := other.Release(t.Context()); err != nil {
		t.Error(err)
	}
	_ = held.Release(t.Context())
}

func newLocker(t *testing.T, e lockengine.Engine, ttl time.Duration) *lock.Locker {
	t.Helper()
	l, err := lock.New(e, lock.Config{TTL: ttl, HandOver: -1, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close(context.Background()) })
	return l
}

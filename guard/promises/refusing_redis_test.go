package promises_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/lock/redislock"
	"github.com/belaygo/belay/notify"
)

// refusingRedis are settings under which a Redis answers questions and refuses
// locks, and those that end it.
var refusingRedis = map[string][2]string{
	"out of memory":    {"maxmemory", "1"},
	"too few replicas": {"min-replicas-to-write", "1"},
}

// ownRedis starts a redis-server of the test's own, with one setting.
func ownRedis(t *testing.T, setting, value string) (*redis.Client, *teststack.RedisServer) {
	t.Helper()
	s := teststack.StartRedis(t, teststack.Volatile+"maxmemory-policy noeviction\n"+setting+" "+value+"\n")
	client := redis.NewClient(&redis.Options{Addr: s.Addr})
	t.Cleanup(func() { _ = client.Close() })
	return client, s
}

// counter counts the scripts that a client has sent.
type counter struct{ scripts atomic.Int64 }

func (*counter) DialHook(next redis.DialHook) redis.DialHook { return next }

func (c *counter) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if strings.HasPrefix(cmd.Name(), "eval") {
			c.scripts.Add(1) // it has been answered
		}
		return err
	}
}

func (*counter) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// onRefusingRedis runs test on a Locker whose Redis refuses locks, until end is called.
func onRefusingRedis(t *testing.T, test func(e *env, l *lock.Locker, n *counter, end func())) {
	for name, setting := range refusingRedis {
		t.Run(name, func(t *testing.T) {
			e, _ := linked(t)
			client, _ := ownRedis(t, setting[0], setting[1])
			n := new(counter)
			client.AddHook(n)
			engine, err := redislock.New(client, redislock.Config{})
			wantNil(t, err)
			t.Cleanup(func() { _ = engine.Close(bg) })
			locker, err := lock.New(engine, lock.Config{TTL: time.Hour})
			wantNil(t, err)
			test(e, locker, n, func() { wantNil(t, client.ConfigSet(bg, setting[0], "0").Err()) })
		})
	}
}

// TestOutageLastsWhileLocksAreRefused: a Redis that answers questions and refuses
// locks is in one outage, which ends when it grants locks again.
func TestOutageLastsWhileLocksAreRefused(t *testing.T) {
	t.Parallel()
	onRefusingRedis(t, func(e *env, l *lock.Locker, n *counter, end func()) {
		g, err := guard.New(e.db, l, guard.Config{Service: "s", Publisher: &e.Events, OnUnavailable: guard.DBOnly})
		wantNil(e.t, err)
		orders := 0
		order := func() {
			orders++
			no := fmt.Sprint(orders)
			wantNil(e.t, g.Apply(bg, "order:"+no, guard.Insert(&Order{No: no})))
		}
		for n.scripts.Load() < 6 { // one asks for the lock, is loaded, and the others probe
			order()
		}
		if n := len(e.Events.All()); n != 1 {
			e.t.Fatalf("%d events in an outage that goes on, want one of its begin", n)
		}
		end()
		testwait.Until(e.t, "the end of the outage is reported", func() bool { return len(e.Events.All()) == 2 })
		without := orders
		order() // with a lock
		for i, want := range []notify.Outcome{notify.OutcomeUnknown, notify.OutcomeCommitted} {
			if ev := e.Events.All()[i]; ev.Verdict != notify.VerdictDegraded || ev.Outcome != want {
				e.t.Errorf("event %d is %+v, want degraded, %s", i, ev, want)
			}
		}
		wantMetrics(e.t, g, map[string]float64{"degraded": 0, "without_lock_total": float64(without)})
		wantNil(e.t, g.Close(bg))
		wantNil(e.t, l.Close(bg))
	})
}

// TestRefusedLockIsNotReleased: operations whose lock Redis has refused cost it one
// script each, and Close finds nothing left to be released.
func TestRefusedLockIsNotReleased(t *testing.T) {
	t.Parallel()
	onRefusingRedis(t, func(e *env, l *lock.Locker, n *counter, _ func()) {
		g, err := guard.New(e.db, l, guard.Config{Service: "s", Publisher: &e.Events}) // the policy FailClosed
		wantNil(e.t, err)
		const refusals = 1000
		for i := range refusals {
			err := g.Apply(bg, fmt.Sprint("order:", i), guard.Insert(&Order{No: fmt.Sprint(i)}))
			wantIs(e.t, err, guard.ErrUnavailable)
			wantIs(e.t, err, lockengine.ErrRefused)
		}
		wantNil(e.t, g.Close(bg))
		ctx, cancel := context.WithTimeout(bg, time.Minute) // an orphan would be kept for an hour
		defer cancel()
		wantNil(e.t, l.Close(ctx))
		if n := n.scripts.Load(); n > refusals+1 { // one more to load the script
			e.t.Errorf("%d scripts were sent for %d refused operations", n, refusals)
		}
		if n := refusalsIn(e.Events.All()); n != refusals {
			e.t.Errorf("events tell of %d refused operations, want %d", n, refusals)
		}
	})
}

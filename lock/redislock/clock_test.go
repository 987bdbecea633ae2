package redislock_test

import (
	"testing"
	"time"

	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/lockengine"
)

// A server's clock is set. Forward, it ends locks early, and their holders learn of it. Back,
// it takes none away, and those of dead processes stay longer; tokens fall.
func TestClockIsSet(t *testing.T) {
	server, clock := teststack.StartRedis(t, teststack.Volatile), teststack.NewClock(t)
	server.Kill()
	server.Env = clock.Env
	server.Start()
	e, other := openURL(t, "redis://"+server.Addr), openURL(t, "redis://"+server.Addr)
	mine, theirs := lockengine.Request{Key: "k", Owner: "me:1"}, lockengine.Request{Key: "k", Owner: "they:1"}

	lease, err := newLocker(t, e, lock.Config{TTL: 2 * time.Second}).Acquire(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	server.SetClock(clock, time.Hour)
	next := acquire(t, other, theirs) // it has expired
	<-lease.Context().Done()
	wantIs(t, lease.Release(t.Context()), lock.ErrLost)
	if next.Token <= lease.Grant().Token {
		t.Errorf("set forward, token %d after %d", next.Token, lease.Grant().Token)
	}

	server.SetClock(clock, -time.Hour)
	_, err = e.Acquire(t.Context(), mine, ttl)
	if left := wantHeld(t, err, theirs.Owner).TTL; left < time.Hour {
		t.Errorf("set back, it is held for another %v", left)
	}
	if err := other.Renew(t.Context(), []lockengine.Request{theirs}, ttl)[0]; err != nil {
		t.Errorf("Renew: %v", err)
	}
	release(t, other, theirs)
	if token := acquire(t, e, mine).Token; token >= next.Token {
		t.Errorf("set back, token %d after %d; the documentation says that it falls", token, next.Token)
	}
	release(t, e, mine)
}

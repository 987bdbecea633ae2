package redislock_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/belaygo/belay/lock/lockengine"
)

// A time that Redis would take for none is refused: it would grant what has expired,
// or delete what is held.
func TestTTLBelowAMillisecond(t *testing.T) {
	e, server := single(t)
	acquire(t, e, hold)
	for _, ttl := range []time.Duration{-time.Second, 0, time.Millisecond - 1} {
		_, err := e.Acquire(t.Context(), lockengine.Request{Key: "free", Owner: "me:2"}, ttl)
		wantIs(t, err, lockengine.ErrDenied)
		wantIs(t, e.Renew(t.Context(), []lockengine.Request{hold}, ttl)[0], lockengine.ErrDenied)
	}
	if !server.Exists("k") || server.Exists("free") {
		t.Error("a request was executed")
	}
}

// Less than a millisecond is some time; none at all, not known.
func TestTimeLeft(t *testing.T) {
	for ms, want := range map[int]time.Duration{0: time.Millisecond, 1: time.Millisecond, -1: 0, 500: 500 * time.Millisecond} {
		node := newNode(t)
		node.reply = func(args []string) string {
			if len(args) == acquireArgs {
				return fmt.Sprintf("*3\r\n:0\r\n$6\r\nthey:1\r\n:%d\r\n", ms)
			}
			return fmt.Sprintf("*2\r\n$6\r\nthey:1\r\n:%d\r\n", ms)
		}
		e := open(t, node.addr)
		_, err := e.Acquire(t.Context(), hold, ttl)
		if left := wantHeld(t, err, "they:1").TTL; left != want {
			t.Errorf("%d ms are told as %v by Acquire, want %v", ms, left, want)
		}
		if holder, err := e.Inspect(t.Context(), hold.Key); err != nil || holder.TTL != want {
			t.Errorf("%d ms are told as %v by Inspect (%v), want %v", ms, holder.TTL, err, want)
		}
	}
}

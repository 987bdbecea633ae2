package redislock_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/lock/redislock"
)

// grantAll says yes to acquires and releases.
func grantAll(args []string) string {
	if len(args) == acquireArgs {
		return granted["acquire"]
	}
	return granted["release"]
}

func unlessMarked(h lockengine.Request) lockengine.Request {
	h.UnlessMarked = true
	return h
}

func marked(h lockengine.Request) lockengine.Request {
	h.Mark = time.Minute
	return h
}

// A marker is a plain key in the slot of its lock, and is set before the release.
func TestMarkerOnTheWire(t *testing.T) {
	n := newNode(t)
	n.other = map[string]string{"get": "$-1\r\n"}
	n.reply = grantAll
	e := open(t, n.addr)
	if _, err := e.Acquire(t.Context(), unlessMarked(hold), ttl); err != nil {
		t.Fatal(err)
	}
	if err := e.Release(t.Context(), marked(hold)); err != nil {
		t.Fatal(err)
	}
	want := "evalsha get set evalsha"
	if got := strings.Join(n.inOrder("evalsha", "get", "set"), " "); got != want {
		t.Errorf("sent %s, want %s", got, want)
	}
}

func TestMarkerIsKept(t *testing.T) {
	c := cluster(t)
	e, err := redislock.Open(options(teststack.Redis(t)...), redislock.Config{Prefix: "p:", Replicas: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close(context.Background())
	h := lockengine.Request{Key: teststack.Key(t, "marked"), Owner: "me:1"}
	acquire(t, e, h)
	if err := e.Release(t.Context(), marked(h)); err != nil {
		t.Fatal(err)
	}
	name := "p:belay_done:{p:" + h.Key + "}"
	t.Cleanup(func() { c.Del(t.Context(), name) })
	if left, err := c.PTTL(t.Context(), name).Result(); err != nil || left <= 50*time.Second || left > time.Minute {
		t.Errorf("the marker lives for %v (%v), want a minute", left, err)
	}
	_, err = e.Acquire(t.Context(), unlessMarked(h), ttl) // with replicas
	wantIs(t, err, lockengine.ErrMarked)
	if holder, err := e.Inspect(t.Context(), h.Key); err != nil || holder.Owner != "" {
		t.Errorf("Inspect: %+v, %v", holder, err)
	}
}

// A marker is read and set under load, when commands go together, as well.
func TestMarkersInBatches(t *testing.T) {
	e := open(t)
	c := cluster(t)
	const callers = 200
	key := teststack.Key(t, "marked")
	together(callers, func(i int) {
		h := lockengine.Request{Key: fmt.Sprint(key, i), Owner: "me:1"}
		_, err := e.Acquire(t.Context(), unlessMarked(h), ttl)
		for notSent(err) { // by a machine with too much to do
			_, err = e.Acquire(t.Context(), unlessMarked(h), ttl)
		}
		if err != nil {
			t.Errorf("AcquireUnlessMarked: %v", err)
			return
		}
		if i%2 == 0 {
			release(t, e, h)
		} else if err := e.Release(t.Context(), marked(h)); err != nil {
			t.Errorf("ReleaseMarked: %v", err)
		}
		_, err = e.Acquire(t.Context(), unlessMarked(h), ttl)
		switch {
		case i%2 == 0 && err != nil:
			t.Errorf("AcquireUnlessMarked of a key without a marker: %v", err)
		case i%2 == 0:
			release(t, e, h)
		default:
			wantIs(t, err, lockengine.ErrMarked)
			c.Del(t.Context(), "belay_done:{"+h.Key+"}")
		}
	})
}

// A look at the marker that fails is a marker that is lost, not an error.
func TestMarkerIsAHint(t *testing.T) {
	for name, reply := range map[string]string{
		"error": "-ERR no\r\n",
		"type":  "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n",
		"nil":   "$-1\r\n",
		"moved": "-MOVED 1 127.0.0.1:1\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			n.reply = grantAll
			n.other = map[string]string{"get": reply, "set": reply}
			e := open(t, n.addr)
			if _, err := e.Acquire(t.Context(), unlessMarked(hold), ttl); err != nil {
				t.Errorf("AcquireUnlessMarked: %v", err)
			}
			if err := e.Release(t.Context(), marked(hold)); err != nil {
				t.Errorf("ReleaseMarked: %v", err)
			}
		})
	}
}

// What was taken in vain and could not be freed is for the Locker to release.
func TestMarkedButNotFreed(t *testing.T) {
	n := newNode(t)
	n.other = map[string]string{"get": "$1\r\n1\r\n"}
	n.reply = func(args []string) string {
		if len(args) == acquireArgs {
			return granted["acquire"]
		}
		return hangUp
	}
	_, err := open(t, n.addr).Acquire(t.Context(), unlessMarked(hold), ttl)
	wantIs(t, err, lockengine.ErrMarked)
	wantIs(t, err, lockengine.ErrNoAnswer)
	if notSent(err) {
		t.Errorf("error %v says that nothing was sent", err)
	}
}

// On a slot that migrates the marker may be out of sight; the lock is not.
func testMigrationMarked(t *testing.T, c *ownCluster) {
	e := open(t, c.Addrs...)
	s := c.shardOf("d")
	target := c.otherMaster(s)
	h := lockengine.Request{Key: "d", Owner: "me:1"}
	acquire(t, e, h)
	if err := e.Release(t.Context(), marked(h)); err != nil {
		t.Fatal(err)
	}
	c.must(target, "CLUSTER", "SETSLOT", s.slot, "IMPORTING", c.id(s.master))
	c.must(s.master, "CLUSTER", "SETSLOT", s.slot, "MIGRATING", c.id(target))
	if _, err := e.Acquire(t.Context(), unlessMarked(h), ttl); err == nil { // at the new node, where no marker is yet
		if err := e.Release(t.Context(), marked(h)); err != nil {
			t.Errorf("ReleaseMarked while the slot migrates: %v", err)
		}
	} else {
		wantIs(t, err, lockengine.ErrMarked)
	}
	host, port := split(target)
	c.must(s.master, "MIGRATE", host, port, "belay_done:{d}", 0, 1000, "REPLACE")
	for _, addr := range []string{target, s.master} {
		c.must(addr, "CLUSTER", "SETSLOT", s.slot, "NODE", c.id(target))
	}
	_, err := e.Acquire(t.Context(), unlessMarked(h), ttl)
	wantIs(t, err, lockengine.ErrMarked)
	if holder, err := e.Inspect(t.Context(), h.Key); err != nil || holder.Owner != "" {
		t.Errorf("Inspect: %+v, %v", holder, err)
	}
}

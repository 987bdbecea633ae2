package redislock_test

import (
	"bytes"
	"context"
	"net"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/lock/redislock"
)

// A takeover is a cluster of two: next is about to have the locks of old, which
// is gone. The engine has found out the latter, but not the former.
type takeover struct {
	redislock.Engine
	old, next *node
	gone      atomic.Bool
}

func newTakeover(t *testing.T) *takeover {
	t.Helper()
	s := &takeover{old: newNode(t), next: newNode(t)}
	s.old.reply = func([]string) string { return hangUp }
	s.next.reply = func([]string) string { return granted["inspect"] }
	s.next.master = s.old.addr
	opts := options(s.old.addr, s.next.addr)
	opts.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		if s.gone.Load() && addr == s.old.addr {
			return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
		}
		return new(net.Dialer).DialContext(ctx, network, addr)
	}
	s.Engine = openWith(t, opts)
	wantUnclear(t, s.Release(t.Context(), hold), "") // the connections that there were are broken now
	s.gone.Store(true)
	testwait.Until(t, "the breaker opens", func() bool { return notAnswering(s.Release(t.Context(), hold)) })
	return s
}

func notAnswering(err error) bool {
	return notSent(err) && strings.Contains(err.Error(), "is not answering")
}

// find asks who has a lock that has moved. On a machine that is busy a look can take longer
// than the engine waits for it: that one says nothing.
func (s *takeover) find(t *testing.T) {
	t.Helper()
	const looks, reloadTime = 20, 300 * time.Millisecond
	for range looks {
		begun := time.Now()
		_, err := s.Inspect(t.Context(), hold.Key)
		if err == nil {
			return
		}
		if time.Since(begun) < reloadTime {
			t.Fatal(err)
		}
	}
	t.Fatalf("%d looks in a row took longer than %v", looks, reloadTime)
}

// take lets next have the locks.
func (s *takeover) take() { s.next.set(func(n *node) { n.master, n.secret = "", false }) }

// Before a node that is gone has the last word, the cluster is asked who has its
// locks now: a client that was idle during the failover does not know.
func TestLockIsElsewhereByNow(t *testing.T) {
	s := newTakeover(t)
	s.take()
	s.find(t)
}

// A silent node is not all that is asked.
func TestSilentNodeIsAskedFirst(t *testing.T) {
	for range 8 { // in half of the cases it is
		s := newTakeover(t)
		s.old.set(func(n *node) {
			n.secret = true
			n.reply = func([]string) string { return "-LOADING Redis is loading\r\n" }
		})
		s.gone.Store(false)
		s.take()
		s.find(t)
	}
}

// After a look in vain, the next caller looks again.
func TestLookInVain(t *testing.T) {
	s := newTakeover(t)
	s.next.set(func(n *node) { n.secret = true })
	if _, err := s.Inspect(t.Context(), hold.Key); !notAnswering(err) {
		t.Errorf("error is %v, want one that says that the node is not answering", err)
	}
	s.take()
	s.find(t)
}

// While a node is away, the others are not asked by each request.
func TestLooksAreFew(t *testing.T) {
	s := newTakeover(t)
	before := s.next.count("cluster")
	const requests = 200
	for range requests {
		if _, err := s.Inspect(t.Context(), hold.Key); err == nil {
			t.Fatal("no error")
		}
	}
	if n := s.next.count("cluster") - before; n > requests/4 {
		t.Errorf("the slot map was asked for %d times by %d requests", n, requests)
	}
}

// Close ends a look that is under way.
func TestCloseEndsLook(t *testing.T) {
	s := newTakeover(t)
	asked := s.next.count("cluster")
	s.next.set(func(n *node) { n.secret = true })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.Inspect(ctx, hold.Key) // it does not wait
	wantUnclear(t, err, "")
	testwait.Until(t, "the map is asked for", func() bool { return s.next.count("cluster") > asked })
	if err := s.Close(context.Background()); err != nil {
		t.Error(err)
	}
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	if bytes.Contains(stacks, []byte("redislock.(*bus).")) {
		t.Errorf("the look goes on:\n%s", stacks)
	}
}

// As long as no node tells the slot map, nothing was sent, and Acquire goes on.
func TestSlotMapIsLate(t *testing.T) {
	n := newNode(t)
	n.reply = func([]string) string { return granted["acquire"] }
	n.secret = true
	e := open(t, n.addr)
	err := e.Release(t.Context(), hold)
	if !notSent(err) {
		t.Errorf("error is %v, want one that says that nothing was sent", err)
	}
	wantUnclear(t, err, n.addr)
	asked := n.count("cluster")
	done := make(chan error, 1)
	go func() {
		_, err := e.Acquire(t.Context(), hold, ttl)
		done <- err
	}()
	testwait.Until(t, "the map is asked for again", func() bool { return n.count("cluster") > asked+1 || len(done) > 0 })
	n.set(func(n *node) { n.secret = false })
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// Where the network is slow, the answer is waited for in the end.
func TestSlotMapIsFarAway(t *testing.T) {
	n := newNode(t)
	n.slow = 150 * time.Millisecond
	n.reply = func([]string) string { return granted["acquire"] }
	e := open(t, n.addr)
	testwait.Until(t, "the map is loaded", func() bool {
		_, err := e.Acquire(t.Context(), hold, ttl)
		return err == nil
	})
}

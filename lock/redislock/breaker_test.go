package redislock_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/belaygo/belay/internal/testmetric"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/lock/redislock"
)

func options(addrs ...string) *redis.UniversalOptions {
	return &redis.UniversalOptions{Addrs: addrs, IsClusterMode: true}
}

func notSent(err error) bool { return errors.Is(err, lockengine.ErrNotSent) }

// patiently acquires a lock, for so long that a failure tells something about the
// node.
func patiently(t *testing.T, e redislock.Engine) error {
	ctx, cancel := context.WithTimeout(t.Context(), 350*time.Millisecond)
	defer cancel()
	_, err := e.Acquire(ctx, hold, ttl)
	return err
}

// A node that says nothing is left alone for a moment, then asked again.
func TestNodeIsNotAnswering(t *testing.T) {
	n := newNode(t)
	var back atomic.Bool
	n.reply = func([]string) string {
		if back.Load() {
			return granted["acquire"]
		}
		return noAnswer
	}
	e := open(t, n.addr)
	try := func() error { return patiently(t, e) }
	together(10, func(int) { wantUnclear(t, try(), "") })
	wantUnclear(t, try(), "")
	want := fmt.Sprintf("redislock: node %s is not answering", n.addr)
	told := func(err error) bool { return notSent(err) && strings.Contains(err.Error(), want) }
	testwait.Until(t, "callers are told", func() bool { return told(try()) }) // one in a while asks the node
	testwait.Until(t, "so are those who ask", func() bool {
		_, err := e.Inspect(t.Context(), "k")
		return told(err)
	})
	if open := testmetric.Sum(t, e, "belay_redis_breaker_open"); open != 1 {
		t.Errorf("belay_redis_breaker_open is %v, want 1", open)
	}
	back.Store(true)
	testwait.Until(t, "the node is asked again", func() bool { return try() == nil })
	if open := testmetric.Sum(t, e, "belay_redis_breaker_open"); open != 0 {
		t.Errorf("belay_redis_breaker_open is %v, want 0", open)
	}
}

// Five requests have to fail first.
func TestBreakerOpensAfterFive(t *testing.T) {
	n := newNode(t)
	n.reply = func([]string) string { return noAnswer }
	e := open(t, n.addr)
	asked := func(int) {
		if err := patiently(t, e); err == nil || notAnswering(err) {
			t.Errorf("error is %v, want that of a request that was not answered", err)
		}
	}
	together(3, asked)
	asked(4)
	asked(5)
	// On a busy machine it may be asked once more in between.
	testwait.Until(t, "the node is known not to answer", func() bool { return notAnswering(patiently(t, e)) })
}

// A healthy node pauses once while many requests are on their way.
func TestBreakerOutlastsPause(t *testing.T) {
	n := newNode(t)
	var over atomic.Bool
	n.reply = func([]string) string {
		if !over.Load() {
			return noAnswer
		}
		return granted["release"]
	}
	e := open(t, n.addr)
	together(10, func(int) { wantUnclear(t, e.Release(t.Context(), hold), "") })
	over.Store(true)
	release(t, e, hold)
}

// Where nobody listens any more, that is known soon.
func TestNodeIsGone(t *testing.T) {
	n := newNode(t)
	var gone atomic.Bool
	opts := options(n.addr)
	opts.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		if gone.Load() {
			return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
		}
		return new(net.Dialer).DialContext(ctx, network, addr)
	}
	e := openWith(t, opts)
	n.reply = func([]string) string { return hangUp }
	wantUnclear(t, e.Release(t.Context(), hold), "") // the connections that there were are broken now
	gone.Store(true)
	refused := 0 // in a row
	testwait.Until(t, "the breaker opens", func() bool {
		err := e.Release(t.Context(), hold)
		switch {
		case notAnswering(err):
			return true
		case errors.Is(err, syscall.ECONNREFUSED):
			refused++
		default: // there was another connection, which broke
			refused = 0
		}
		return false
	})
	if refused != 3 {
		t.Errorf("the node is left alone after %d refused connections, want 3", refused)
	}
	if _, err := e.Inspect(t.Context(), hold.Key); !notAnswering(err) {
		t.Errorf("error of a question is %v, want one that says that the node is not answering", err)
	}
}

// A question changes nothing: when its connection breaks, it is asked again.
func TestQuestionIsAskedAgain(t *testing.T) {
	n := newNode(t)
	n.reply = func([]string) string {
		if n.seen["evalsha"] < 2 {
			return hangUp
		}
		return granted["inspect"]
	}
	e := open(t, n.addr)
	if _, err := e.Inspect(t.Context(), hold.Key); err != nil {
		t.Error(err)
	}
}

// Callers in a hurry, and errors that the node answers, say nothing about it.
func TestBreakerStaysClosed(t *testing.T) {
	n := newNode(t)
	reply := noAnswer
	n.reply = func([]string) string { return reply }
	e := open(t, n.addr)
	for range 20 {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
		wantUnclear(t, e.Release(ctx, hold), "")
		cancel()
	}
	for _, answer := range []string{"-ERR no\r\n", "-WRONGTYPE no\r\n", "-NOSCRIPT no\r\n", "-OOM no\r\n", ":7\r\n"} {
		n.mu.Lock()
		reply = answer
		n.mu.Unlock()
		for range 20 {
			wantUnclear(t, e.Release(t.Context(), hold), "")
		}
	}
	n.mu.Lock()
	reply = granted["release"]
	n.mu.Unlock()
	release(t, e, hold)
}

// What was refused without having been executed is asked again for a while.
func TestAcquireAsksAgain(t *testing.T) {
	for _, refusal := range []string{"CLUSTERDOWN The cluster is down", "TRYAGAIN Multiple keys", "LOADING Redis is loading", "MASTERDOWN Link down"} {
		t.Run(refusal[:8], func(t *testing.T) {
			n := newNode(t)
			n.reply = func([]string) string {
				if n.seen["evalsha"] < 4 {
					return "-" + refusal + "\r\n"
				}
				return granted["acquire"]
			}
			e := open(t, n.addr)
			err := e.Release(t.Context(), hold) // which is not
			wantIs(t, err, lockengine.ErrNotSent)
			wantUnclear(t, err, refusal)
			acquire(t, e, hold)
		})
	}
}

package locktest

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/belaygo/belay/internal/wait"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/lockengine"
)

const (
	brief   = 3 * time.Second  // of what is to expire, but not while a busy machine asks who has it
	ttl     = 4 * time.Second  // of what is to be renewed, by a busy machine, too
	longTTL = 30 * time.Second // of what is not to expire
	limit   = 15 * time.Second // of what a check waits for
)

// A check is one subtest with its setup.
type check struct {
	*testing.T
	Setup
	key          string
	mine, theirs lockengine.Request // of key
}

func newCheck(t *testing.T, newSetup func(t *testing.T) Setup, promised func(Setup) bool) *check {
	t.Helper()
	setup := newSetup(t)
	if setup.Engine == nil || setup.Other == nil {
		t.Fatal("Setup.Engine or Setup.Other is nil")
	}
	if promised != nil && !promised(setup) {
		t.Skip("the engine does not promise this")
	}
	c := &check{T: t, Setup: setup, key: newKey()}
	c.mine, c.theirs = c.request(c.key), c.request(c.key)
	return c
}

func newKey() string { return "locktest:" + rand.Text() }

// request returns a request with an owner of its own.
func (c *check) request(key string) lockengine.Request {
	return lockengine.Request{Key: key, Owner: rand.Text() + ":1"}
}

// ctx returns a context that ends when the check has waited for too long.
func (c *check) ctx() context.Context {
	ctx, cancel := context.WithTimeout(c.Context(), limit)
	c.Cleanup(cancel)
	return ctx
}

// ended returns a context that has ended.
func (c *check) ended() context.Context {
	ctx, cancel := context.WithCancel(c.Context())
	cancel()
	return ctx
}

// another is an engine that may prolong what Engine has acquired.
func (c *check) another() lockengine.Engine {
	if c.Bound {
		return c.Engine
	}
	return c.Other
}

// try acquires r, and releases it in the end.
func (c *check) try(e lockengine.Engine, r lockengine.Request, ttl time.Duration) (lockengine.Grant, error) {
	grant, err := e.Acquire(c.ctx(), r, ttl)
	if err == nil {
		c.Cleanup(func() { _ = e.Release(context.Background(), r) })
	}
	return grant, err
}

// acquire is try of what must be granted. An engine with several nodes may have to try again, while a
// release reaches the last of them.
func (c *check) acquire(e lockengine.Engine, r lockengine.Request, ttl time.Duration) lockengine.Grant {
	c.Helper()
	ctx := c.ctx()
	grant, err := c.try(e, r, ttl)
	for isPartial(err) && wait.Sleep(ctx, pause, nil) == nil {
		grant, err = c.try(e, r, ttl)
	}
	if err != nil {
		c.Fatalf("Acquire %q for %s: %v", r.Key, r.Owner, err)
	}
	return grant
}

func (c *check) release(e lockengine.Engine, r lockengine.Request) {
	c.Helper()
	if err := e.Release(c.ctx(), r); err != nil {
		c.Fatalf("Release %q for %s: %v", r.Key, r.Owner, err)
	}
}

// wantRefused checks that r is not granted because owner, who may be unknown to
// the engine, has the key.
func (c *check) wantRefused(e lockengine.Engine, r lockengine.Request, owner string) lockengine.Holder {
	c.Helper()
	_, err := e.Acquire(c.ctx(), r, longTTL)
	return c.wantHeld(err, r.Key, owner)
}

func (c *check) wantHeld(err error, key, owner string) lockengine.Holder {
	c.Helper()
	held, ok := errors.AsType[*lockengine.HeldError](err)
	if !ok {
		c.Fatalf("error is %v, want a *lockengine.HeldError", err)
	}
	if held.Key != key {
		c.Errorf("the *lockengine.HeldError is about %q, want %q", held.Key, key)
	}
	if held.Holder.Owner != owner && held.Holder.Owner != "" {
		c.Errorf("%q is held by %q, want %q", key, held.Holder.Owner, owner)
	}
	return held.Holder
}

// wantHolder checks what both engines say about key.
func (c *check) wantHolder(key, owner string) {
	c.Helper()
	for _, e := range []lockengine.Engine{c.Engine, c.Other} {
		holder, err := e.Inspect(c.ctx(), key)
		if err != nil || holder.Owner != owner {
			c.Errorf("Inspect: %q is held by %q (%v), want %q", key, holder.Owner, err, owner)
		}
	}
}

func (c *check) wantIs(err error, targets ...error) {
	c.Helper()
	for _, target := range targets {
		if !errors.Is(err, target) {
			c.Errorf("error is %v, want one that matches %q", err, target)
		}
	}
}

// age lets d pass in the store.
func (c *check) age(d time.Duration) {
	if c.Advance != nil {
		c.Advance(d)
		return
	}
	<-time.After(d)
}

// expire waits until a grant of brief has expired.
func (c *check) expire() {
	c.Helper()
	c.age(brief)
	c.eventually("expired", func() bool {
		holder, err := c.Other.Inspect(c.ctx(), c.key)
		return err == nil && holder.Owner == ""
	})
}

// pass lets d pass in the store and here.
func (c *check) pass(d time.Duration) {
	const steps = 50
	for range steps {
		<-time.After(d / steps)
		if c.Advance != nil {
			c.Advance(d / steps)
		}
	}
}

// eventually waits until done is true.
func (c *check) eventually(what string, done func() bool) {
	c.Helper()
	for end := time.Now().Add(limit); !done(); <-time.After(5 * time.Millisecond) {
		if time.Now().After(end) {
			c.Fatalf("after %v still not: %s", limit, what)
		}
	}
}

// locker returns a Locker that is closed when the check ends.
func (c *check) locker(e lockengine.Engine, cfg lock.Config) *lock.Locker {
	c.Helper()
	if cfg.Logger == nil { // what is lost here is lost on purpose
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.TTL == 0 { // a busy machine may be slow to release
		cfg.RequestTimeout = limit
	}
	l, err := lock.New(e, cfg)
	if err != nil {
		c.Fatal(err)
	}
	c.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		if err := l.Close(ctx); err != nil {
			c.Errorf("Close: %v", err)
		}
	})
	return l
}

func (c *check) lease(l *lock.Locker, key string) *lock.Lease {
	c.Helper()
	lease, err := l.TryAcquire(c.ctx(), key)
	if err != nil {
		c.Fatalf("TryAcquire: %v", err)
	}
	return lease
}

func (c *check) free(lease *lock.Lease) {
	c.Helper()
	if err := lease.Release(context.Background()); err != nil {
		c.Errorf("Release: %v", err)
	}
}

// A waiter is an Acquire on its way.
type waiter struct {
	lease *lock.Lease
	err   error
	done  chan struct{}
}

func (c *check) wait(ctx context.Context, l *lock.Locker, key string) *waiter {
	w := &waiter{done: make(chan struct{})}
	go func() {
		defer close(w.done)
		w.lease, w.err = l.Acquire(ctx, key)
	}()
	return w
}

// got returns the lease that the waiter must get.
func (c *check) got(w *waiter) *lock.Lease {
	c.Helper()
	<-w.done
	if w.err != nil {
		c.Fatalf("Acquire: %v", w.err)
	}
	return w.lease
}

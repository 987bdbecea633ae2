package zklock

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/lock/internal/holds"
	"github.com/belaygo/belay/lock/lockengine"
)

// The timeout of a session counts from the latest request that the leader must know of.
func TestSessionLasts(t *testing.T) {
	const timeout = 48 * time.Second // reported within 8
	start := time.Now()
	at := func(seconds float64) time.Time { return start.Add(time.Duration(seconds * float64(time.Second))) }
	s := new(session)
	s.connected(at(0), timeout)
	for _, sent := range []float64{2, 4, 4.5, 6} {
		s.heard(at(sent), at(sent+0.1))
	}
	for now, want := range map[float64]float64{
		1: 0, 10: 0, 10.1: 2, 12.1: 4, 13: 4, 14.1: 6, 40: 6,
	} {
		if until := s.lastsUntil(at(now)); !until.Equal(at(want).Add(timeout)) {
			t.Errorf("at %v s it lasts until %v s, want %v", now, until.Sub(start).Seconds(), want+timeout.Seconds())
		}
	}
	s.connected(at(30), timeout)
	if until := s.lastsUntil(at(30.1)); !until.Equal(at(30).Add(timeout)) {
		t.Errorf("a new connection does not prolong it: %v", until.Sub(start))
	}
}

func openInside(t *testing.T) *engine {
	t.Helper()
	e, err := New(Config{Servers: teststack.ZooKeeper(t), Root: "/inside-" + t.Name(), SessionTimeout: 8 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close(context.Background()) })
	return e.(*engine)
}

// A session that was not used for long is prolonged by a new connection before a lock is
// acquired in it.
func TestStaleSessionIsProlonged(t *testing.T) {
	e := openInside(t)
	before, err := e.client.ready(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s := before.session
	s.mu.Lock()
	s.contacts = []contact{{sent: time.Now().Add(-5 * time.Second)}} // as if it had stood still
	s.mu.Unlock()
	r := lockengine.Request{Key: "k", Owner: "me:1"}
	if _, err := e.Acquire(t.Context(), r, 6*time.Second); err != nil {
		t.Fatal(err)
	}
	after, err := e.client.ready(t.Context())
	if err != nil || after == before || after.session != s {
		t.Errorf("it was acquired on the connection that was there (%v), or in another session", after == before)
	}
	if err := e.Release(t.Context(), r); err != nil {
		t.Error(err)
	}
}

// A session that is ended by another client takes its locks with it. The engine notices, and
// goes on in a new one.
func TestKilledSession(t *testing.T) {
	e := openInside(t)
	r := lockengine.Request{Key: "k", Owner: "me:1"}
	if _, err := e.Acquire(t.Context(), r, 5*time.Second); err != nil {
		t.Fatal(err)
	}
	conn, err := e.client.ready(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	killer := &client{cfg: e.cfg, event: e.fired}
	killer.ctx = t.Context()
	twin := &session{id: conn.session.id, password: conn.session.password, timeout: conn.session.granted()}
	second, err := killer.connect(e.cfg.Servers[0], twin)
	if err != nil {
		t.Fatal(err)
	}
	go second.receive()
	if _, err := do(t.Context(), second, "close", opClose, nil); err != nil && !errors.Is(err, lockengine.ErrNoAnswer) {
		t.Fatal(err)
	}
	second.fail(errClosed)
	<-second.dead
	for conn == nil || conn.session.id == twin.id {
		conn, err = e.client.ready(t.Context())
		if err != nil && t.Context().Err() != nil {
			t.Fatal(err)
		}
		<-time.After(10 * time.Millisecond)
	}
	if err := e.Renew(t.Context(), []lockengine.Request{r}, 5*time.Second)[0]; !errors.Is(err, lockengine.ErrNotHeld) {
		t.Errorf("Renew: %v", err)
	}
	if _, err := e.Acquire(t.Context(), r, 5*time.Second); err != nil {
		t.Error(err)
	}
	if err := e.Release(t.Context(), r); err != nil {
		t.Error(err)
	}
}

// A lock whose acquire is on its way is no stray: it may have been granted just before the connection
// failed.
func TestAcquireOnItsWayIsNoStray(t *testing.T) {
	e := openInside(t)
	h := holds.Hold{Key: "k", Owner: "me:1"}
	conn, err := e.client.ready(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	e.holds.Begin(h)
	if _, err := e.acquire(t.Context(), conn, lockengine.Request{Key: h.Key, Owner: h.Owner}); err != nil {
		t.Fatal(err)
	}
	if these, err := e.strays(t.Context(), conn); err != nil || len(these) > 0 {
		t.Errorf("on its way: %v, %v", these, err)
	}
	e.holds.Done(h)
	if these, err := e.strays(t.Context(), conn); err != nil || !slices.Equal(these, []holds.Hold{h}) {
		t.Errorf("after it: %v, %v", these, err)
	}
	e.deleteStrays(conn)
	if f, err := e.get(t.Context(), conn, h.Key); f != nil || err != nil {
		t.Errorf("a stray is left: %+v, %v", f, err)
	}
}

// Keys that differ have nodes that differ, with names that ZooKeeper takes.
func TestEscaped(t *testing.T) {
	names := make(map[string]string)
	for _, key := range []string{"a", "a/b", "a%2fb", "a\x00", "a%00", ".", "..", "%2e", "...", "%o-a", " ", "é", "\x7f", "A"} {
		name := escaped(key)
		if other, ok := names[name]; ok {
			t.Errorf("%q and %q are both %q", key, other, name)
		}
		names[name] = key
		if !isPath("/" + name) {
			t.Errorf("%q becomes %q, which is no name", key, name)
		}
	}
}

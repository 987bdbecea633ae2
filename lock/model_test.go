package lock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/memlock"
)

// Two Lockers do anything in any order, locks get lost, time passes. What the
// engine says is the truth that they are held against.
func TestModel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rapid.Check(struct{ rapid.TB }{t}, func(rt *rapid.T) { // a bubble has no t.Deadline
			m := newModel(t)
			defer m.close()
			rt.Repeat(map[string]func(*rapid.T){
				"acquire": m.acquire,
				"release": m.release,
				"abandon": m.abandon,
				"forget":  m.forget,
				"pass":    m.pass,
				"":        m.check,
			})
		})
	})
}

type model struct {
	engine  *memlock.Engine
	lockers []*lock.Locker
	leases  []*modelLease
}

type modelLease struct {
	*lock.Lease
	locker    *lock.Locker
	forgotten time.Time // when the engine lost it, zero = it has not
	end       error     // what Release must say from now on
	abandoned bool
}

func newModel(t *testing.T) *model {
	m := &model{engine: memlock.New()}
	for range 2 {
		l, err := lock.New(m.engine, lock.Config{TTL: ttl})
		if err != nil {
			t.Fatal(err)
		}
		m.lockers = append(m.lockers, l)
	}
	return m
}

func (m *model) close() {
	for _, l := range m.lockers {
		_ = l.Close(endedContext())
	}
	synctest.Wait()
}

func (m *model) owner(key string) string {
	holder, _ := m.engine.Inspect(context.Background(), key)
	return holder.Owner
}

// inside reports whether a lease shuts the gate of its Locker.
func (l *modelLease) inside() bool {
	if l.abandoned {
		return time.Now().Before(l.Deadline())
	}
	return l.Err() == nil
}

func drawKey(t *rapid.T) string { return rapid.SampledFrom([]string{"a", "b"}).Draw(t, "key") }

func (m *model) acquire(t *rapid.T) {
	locker, key := rapid.SampledFrom(m.lockers).Draw(t, "locker"), drawKey(t)
	free := m.owner(key) == ""
	for _, l := range m.leases {
		if l.locker == locker && l.Key() == key && l.inside() {
			free = false
		}
	}
	lease, err := locker.TryAcquire(context.Background(), key)
	if free != (err == nil) {
		t.Fatalf("free is %t, TryAcquire: %v", free, err)
	}
	if err == nil {
		m.leases = append(m.leases, &modelLease{Lease: lease, locker: locker})
	}
}

func (m *model) draw(t *rapid.T) *modelLease {
	if len(m.leases) == 0 {
		t.Skip("no lease")
	}
	return rapid.SampledFrom(m.leases).Draw(t, "lease")
}

func (m *model) release(t *rapid.T) {
	l := m.draw(t)
	want := l.end
	switch {
	case want != nil:
	case l.Err() != nil || m.owner(l.Key()) != l.Owner():
		want = lock.ErrLost
	}
	lost := l.Err() != nil
	if err := l.Release(context.Background()); !errors.Is(err, want) {
		t.Fatalf("Release: %v, want %v", err, want)
	}
	if l.end == nil && !lost {
		l.end = lock.ErrNotHeld
	}
	synctest.Wait()
}

func (m *model) abandon(t *rapid.T) {
	l := m.draw(t)
	if l.Err() == nil {
		l.abandoned, l.end = true, lock.ErrNotHeld
	}
	l.Abandon()
}

func (m *model) forget(t *rapid.T) {
	key := drawKey(t)
	owner := m.owner(key)
	for _, l := range m.leases {
		if l.Owner() == owner {
			l.forgotten = time.Now()
		}
	}
	m.engine.Forget(key)
}

func (m *model) pass(t *rapid.T) {
	pass(time.Duration(rapid.IntRange(1, int(2*ttl)).Draw(t, "time")))
}

func (m *model) check(t *rapid.T) {
	for _, l := range m.leases {
		alive := l.Err() == nil
		switch {
		case alive && (l.end != nil || l.abandoned):
			t.Fatalf("%s came back to life", l.Owner())
		case l.end != nil:
		case l.forgotten.IsZero() && (!alive || m.owner(l.Key()) != l.Owner()):
			t.Fatalf("%s was lost, and nobody took it: %v", l.Owner(), l.Err())
		case !l.forgotten.IsZero() && alive && time.Since(l.forgotten) > renewed:
			t.Fatalf("%s was lost %v ago and does not know it", l.Owner(), time.Since(l.forgotten))
		}
	}
}

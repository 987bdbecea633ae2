package lock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/lockengine"
)

// Two Lockers do anything in any order, callers queue, locks get lost, time
// passes. What the engine says is the truth that they are held against.
func TestModel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rapid.Check(struct{ rapid.TB }{t}, func(rt *rapid.T) { // a bubble has no t.Deadline
			m := newModel(t)
			defer m.close()
			rt.Repeat(map[string]func(*rapid.T){
				"acquire": m.acquire,
				"queue":   m.queue,
				"nest":    m.nest,
				"release": m.release,
				"abandon": m.abandon,
				"forget":  m.forget,
				"orphan":  m.orphan,
				"pass":    m.pass,
				"":        m.check,
			})
		})
	})
}

const (
	modelHandOver = 2500 * time.Microsecond // how long a grant of a modelled Locker is handed over
	modelMaxHold  = 3 * ttl
)

type model struct {
	engine  *bells
	lockers []*lock.Locker
	leases  []*modelLease
	waiters []*modelWaiter
	tokens  map[string]int64        // the greatest of each key
	orphans map[string]*lock.Locker // of which Locker an owner is that nobody knows
}

type modelLease struct {
	*lock.Lease
	locker    *lock.Locker
	granted   time.Time // by the engine
	limit     time.Time // of its holder
	forgotten time.Time // when the engine lost it, zero = it has not
	end       error     // what Release must say from now on
	abandoned bool
}

type modelWaiter struct {
	locker *lock.Locker
	key    string
	got    chan *lock.Lease
}

func newModel(t *testing.T) *model {
	m := &model{engine: newBells(), tokens: make(map[string]int64), orphans: make(map[string]*lock.Locker)}
	for range 2 {
		l, err := lock.New(m.engine, lock.Config{TTL: ttl, HandOver: modelHandOver, MaxHold: modelMaxHold})
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
		return time.Now().Before(l.Grant().Deadline)
	}
	return l.Err() == nil
}

// shares reports whether two leases are nested.
func (l *modelLease) shares(other *modelLease) bool {
	return l != other && l.Grant().Owner == other.Grant().Owner && l.Grant().Token == other.Grant().Token
}

// shared reports whether a nested lease keeps the lock of l.
func (m *model) shared(l *modelLease) bool {
	for _, other := range m.leases {
		if l.shares(other) && other.Err() == nil {
			return true
		}
	}
	return false
}

func (m *model) queued(locker *lock.Locker, key string) bool {
	for _, w := range m.waiters {
		if w.locker == locker && w.key == key {
			return true
		}
	}
	return false
}

func (m *model) wanted(key string) bool {
	return slices.ContainsFunc(m.waiters, func(w *modelWaiter) bool { return w.key == key })
}

// handsOver reports whether the release of l is not the engine's business.
func (m *model) handsOver(l *modelLease) bool {
	return m.queued(l.locker, l.Grant().Key) &&
		(l.Grant().Token == l.Grant().FirstToken || time.Since(l.granted) < modelHandOver)
}

func drawKey(t *rapid.T) string { return rapid.SampledFrom([]string{"a", "b"}).Draw(t, "key") }

func (m *model) drawLocker(t *rapid.T) *lock.Locker {
	return rapid.SampledFrom(m.lockers).Draw(t, "locker")
}

func (m *model) acquire(t *rapid.T) {
	locker, key := m.drawLocker(t), drawKey(t)
	owner := m.owner(key)
	if m.orphans[owner] == locker && m.wanted(key) {
		t.Skip("a waiter of the other Locker may get it first")
	}
	free := (owner == "" || m.orphans[owner] == locker) && !m.queued(locker, key)
	for _, l := range m.leases {
		if l.locker == locker && l.Grant().Key == key && l.inside() {
			free = false
		}
	}
	lease, err := locker.TryAcquire(context.Background(), key)
	if free != (err == nil) {
		t.Fatalf("free is %t, TryAcquire: %v", free, err)
	}
	if err == nil {
		m.add(t, locker, lease)
	}
}

// add takes in a new holder.
func (m *model) add(t *rapid.T, locker *lock.Locker, lease *lock.Lease) {
	added := &modelLease{Lease: lease, locker: locker, granted: lease.Grant().AcquiredAt, limit: lease.Grant().AcquiredAt.Add(modelMaxHold)}
	for _, l := range m.leases {
		if l.Grant().Owner == lease.Grant().Owner {
			added.granted, added.forgotten = l.granted, l.forgotten
		}
	}
	m.leases = append(m.leases, added)
	if !added.forgotten.IsZero() {
		return
	}
	if lease.Grant().Token <= m.tokens[lease.Grant().Key] {
		t.Fatalf("token %d after %d", lease.Grant().Token, m.tokens[lease.Grant().Key])
	}
	m.tokens[lease.Grant().Key] = lease.Grant().Token
}

func (m *model) queue(t *rapid.T) {
	w := &modelWaiter{m.drawLocker(t), drawKey(t), make(chan *lock.Lease, 1)}
	m.waiters = append(m.waiters, w)
	go func() {
		if lease, err := w.locker.Acquire(context.Background(), w.key); err == nil {
			w.got <- lease
		}
	}()
	synctest.Wait()
}

// collect takes in the waiters who have got the lock.
func (m *model) collect(t *rapid.T) {
	var left []*modelWaiter
	for _, w := range m.waiters {
		select {
		case lease := <-w.got:
			m.add(t, w.locker, lease)
		default:
			left = append(left, w)
		}
	}
	m.waiters = left
}

func (m *model) nest(t *rapid.T) {
	outer := m.draw(t)
	if outer.Err() != nil {
		t.Skip("the lease has ended")
	}
	lease, err := outer.locker.TryAcquire(outer.Context(), outer.Grant().Key)
	if err != nil {
		t.Fatalf("nested TryAcquire: %v", err)
	}
	inner := &modelLease{Lease: lease, locker: outer.locker, granted: outer.granted, limit: outer.limit, forgotten: outer.forgotten}
	if !inner.shares(outer) {
		t.Fatalf("owner %s, token %d in %s, %d", inner.Grant().Owner, inner.Grant().Token, outer.Grant().Owner, outer.Grant().Token)
	}
	m.leases = append(m.leases, inner)
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
	case l.Err() != nil:
		want = lock.ErrLost
	case m.shared(l) || m.handsOver(l): // the engine is not asked
	case m.owner(l.Grant().Key) != l.Grant().Owner:
		want = lock.ErrLost
	}
	lost := l.Err() != nil
	if err := l.Release(context.Background()); !errors.Is(err, want) {
		t.Fatalf("Release: %v, want %v", err, want)
	}
	if l.end == nil && !lost {
		l.end = lockengine.ErrNotHeld
	}
	synctest.Wait()
}

func (m *model) abandon(t *rapid.T) {
	l := m.draw(t)
	if l.Err() == nil {
		for _, other := range m.leases {
			if other.shares(l) && other.end == nil {
				other.abandoned, other.end = true, lockengine.ErrNotHeld
			}
		}
		l.abandoned, l.end = true, lockengine.ErrNotHeld
	}
	l.Abandon()
	synctest.Wait()
}

func (m *model) forget(t *rapid.T) {
	key := drawKey(t)
	owner := m.owner(key)
	for _, l := range m.leases {
		if l.Grant().Owner == owner {
			l.forgotten = time.Now()
		}
	}
	m.engine.Forget(key)
}

// orphan has the engine execute an acquire that its Locker has given up.
func (m *model) orphan(t *rapid.T) {
	locker, key := m.drawLocker(t), drawKey(t)
	if m.owner(key) != "" {
		t.Skip("the key is held")
	}
	h := lockengine.Request{Key: key, Owner: fmt.Sprintf("%s:0%d", locker.ID(), len(m.orphans))}
	m.orphans[h.Owner] = locker
	if _, err := m.engine.Engine.Acquire(context.Background(), h, ttl); err != nil {
		t.Fatal(err)
	}
}

func (m *model) pass(t *rapid.T) {
	pass(time.Duration(rapid.IntRange(1, int(2*ttl)).Draw(t, "time")))
}

func (m *model) check(t *rapid.T) {
	m.collect(t)
	for _, l := range m.leases {
		alive, late := l.Err() == nil, !time.Now().Before(l.limit)
		switch {
		case alive && (l.end != nil || l.abandoned):
			t.Fatalf("%s came back to life", l.Grant().Owner)
		case l.end != nil:
		case late && alive:
			t.Fatalf("%s is held beyond its limit", l.Grant().Owner)
		case l.forgotten.IsZero() && late:
			if !errors.Is(l.Err(), lock.ErrMaxHold) {
				t.Fatalf("%s ended with %v, want ErrMaxHold", l.Grant().Owner, l.Err())
			}
		case l.forgotten.IsZero() && (!alive || m.owner(l.Grant().Key) != l.Grant().Owner):
			t.Fatalf("%s was lost, and nobody took it: %v", l.Grant().Owner, l.Err())
		case !l.forgotten.IsZero() && alive && time.Since(l.forgotten) > renewed:
			t.Fatalf("%s was lost %v ago and does not know it", l.Grant().Owner, time.Since(l.forgotten))
		}
	}
}

package guard

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/lock/memlock"
	"github.com/belaygo/belay/notify"
)

// keyEngine is an engine whose locks can be taken away, and that refuses some keys.
type keyEngine struct {
	lockengine.Engine
	mu      sync.Mutex
	asked   []string
	refuses map[string]error
	grants  map[string]lockengine.Request
}

func (e *keyEngine) Acquire(ctx context.Context, r lockengine.Request, ttl time.Duration) (lockengine.Grant, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.asked = append(e.asked, r.Key)
	if err := e.refuses[r.Key]; err != nil {
		return lockengine.Grant{}, err
	}
	e.grants[r.Key] = r
	return e.Engine.Acquire(ctx, r, ttl)
}

// take takes the lock on key away, and gives it to another.
func (e *keyEngine) take(t *testing.T, key string) {
	t.Helper()
	e.mu.Lock()
	r := e.grants[key]
	e.mu.Unlock()
	if err := e.Release(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Engine.Acquire(t.Context(), lockengine.Request{Key: key, Owner: "another"}, time.Hour); err != nil {
		t.Fatal(err)
	}
}

// newKeys returns a set of keys, the first of which Do was given, and its engine.
func newKeys(t *testing.T, policy Policy, keys ...string) (*keySet, *keyEngine) {
	t.Helper()
	e := &keyEngine{Engine: memlock.New(), refuses: make(map[string]error), grants: make(map[string]lockengine.Request)}
	locker, err := lock.New(e, lock.Config{TTL: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := Config{Service: "test", Publisher: notify.PublisherFunc(func(context.Context, notify.Event) error { return nil })}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	m, running := newMetrics("test"), newRunning()
	r := &reporter{cfg, m}
	halt, stop := context.WithCancel(context.Background())
	t.Cleanup(func() {
		stop()
		if err := errors.Join(running.close(context.Background()), locker.Close(context.Background())); err != nil {
			t.Error(err)
		}
	})
	layer := &firstLayer{
		locker: locker, cfg: cfg, metrics: m,
		outages: newOutages(halt, e, r, running), refusals: newRefusals(halt, e, r, running),
	}
	p := &plan{main: keys[0], policy: policy}
	o := new(options)
	for _, key := range keys[1:] {
		o.also = append(o.also, also{key: key})
	}
	if err := p.fill("", o); err != nil {
		t.Fatal(err)
	}
	s := &keySet{layer: layer, ctx: t.Context()}
	s.of(p)
	return s, e
}

func acquireAll(t *testing.T, s *keySet) {
	t.Helper()
	if again, err := s.acquire(t.Context()); again || err != nil {
		t.Fatalf("acquire: %t, %v", again, err)
	}
}

// TestKeySet: the keys are acquired in their order, and given back.
func TestKeySet(t *testing.T) {
	s, e := newKeys(t, FailClosed, "b", "c", "a")
	acquireAll(t, s)
	if want := []string{"a", "b", "c"}; !slices.Equal(e.asked, want) {
		t.Errorf("acquired are %q, want %q", e.asked, want)
	}
	if err := errors.Join(s.alive(), s.without(), s.confirm()); err != nil {
		t.Error(err)
	}
	if who, _ := s.holder("c"); who != notify.HolderSelf {
		t.Errorf("the holder of c is %s", who)
	}
	if got := s.state("none").key; got != "b" {
		t.Errorf("a row of no key is judged by %q, want that of Do", got)
	}
	if gone := s.settle(notify.OutcomeCommitted, true); len(gone) != 0 {
		t.Errorf("lost are %v", gone)
	}
	s.reset()
	acquireAll(t, s) // they are free
	s.settle(notify.OutcomeRolledBack, false)
}

// TestKeySetBusy: what was acquired before the refusal is given back.
func TestKeySetBusy(t *testing.T) {
	s, e := newKeys(t, FailClosed, "a", "b")
	e.refuses["b"] = &lockengine.HeldError{Key: "b"}
	if _, err := s.acquire(t.Context()); !errors.Is(err, ErrBusy) {
		t.Fatalf("error is %v, want ErrBusy", err)
	}
	s.settle(notify.OutcomeRolledBack, false)
	delete(e.refuses, "b")
	s.reset()
	acquireAll(t, s)
	s.settle(notify.OutcomeRolledBack, false)
}

// TestKeySetLoss: a lock that another has is found when it is asked, and when it is released.
func TestKeySetLoss(t *testing.T) {
	s, e := newKeys(t, FailClosed, "a", "b")
	acquireAll(t, s)
	e.take(t, "b")
	if who, owner := s.holder("b"); who != notify.HolderOther || owner != "another" {
		t.Errorf("the holder of b is %s, %q", who, owner)
	}
	if key, how := s.missing(); key != "b" || how != notify.LossGone {
		t.Errorf("missing is %q, %q", key, how)
	}
	if err := s.confirm(); err == nil {
		t.Error("each lock is held")
	}
	gone := s.settle(notify.OutcomeCommitted, false)
	if len(gone) != 1 || gone[0].key != "b" || !errors.Is(gone[0].err, lock.ErrLost) {
		t.Errorf("lost are %v, want b", gone)
	}
}

// TestKeySetUnknown: after a COMMIT of unknown outcome nobody gets the keys.
func TestKeySetUnknown(t *testing.T) {
	s, e := newKeys(t, FailClosed, "a")
	acquireAll(t, s)
	if gone := s.settle(notify.OutcomeUnknown, false); gone != nil {
		t.Errorf("lost are %v", gone)
	}
	if h, err := e.Inspect(t.Context(), "a"); err != nil || h.Owner == "" {
		t.Errorf("the holder is %+v, %v", h, err)
	}
	s.settle(notify.OutcomeRolledBack, false) // nor does it release them later
	if h, err := e.Inspect(t.Context(), "a"); err != nil || h.Owner == "" {
		t.Errorf("the holder is %+v, %v", h, err)
	}
}

// TestKeySetWithout: in an outage DBOnly goes on without the lock, and counts what became of it.
func TestKeySetWithout(t *testing.T) {
	s, e := newKeys(t, DBOnly, "a")
	broken := errors.New("broken")
	e.refuses["a"] = broken
	acquireAll(t, s)
	if err := s.without(); !errors.Is(err, broken) {
		t.Errorf("it is without the lock because of %v", err)
	}
	if who, _ := s.holder("a"); who != notify.HolderUnknown {
		t.Errorf("the holder is %s", who)
	}
	o := s.outages[0]
	if o.ran.Load() != 1 || o.running.Load() != 1 {
		t.Errorf("%d ran, %d run", o.ran.Load(), o.running.Load())
	}
	s.settle(notify.OutcomeCommitted, true)
	s.leave(notify.OutcomeCommitted)
	if outcome, n := o.became(); outcome != notify.OutcomeCommitted || n != 1 || o.running.Load() != 0 {
		t.Errorf("%d are %s, %d run", n, outcome, o.running.Load())
	}
}

package switchlock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belaygo/belay/internal/testmetric"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/lock/memlock"
	"github.com/belaygo/belay/lock/switchlock"
)

// An engine of a test can be switched off, and records its requests.
type engine struct {
	lockengine.Engine
	dead  atomic.Bool
	mute  atomic.Bool // it releases nothing
	calls atomic.Int64
}

func newEngine() *engine { return &engine{Engine: memlock.New()} }

var errDead = fmt.Errorf("%w: switched off", lockengine.ErrNotSent)

func (e *engine) ask() error {
	e.calls.Add(1)
	if e.dead.Load() {
		return errDead
	}
	return nil
}

func (e *engine) Acquire(ctx context.Context, r lockengine.Request, ttl time.Duration) (lockengine.Grant, error) {
	if err := e.ask(); err != nil {
		return lockengine.Grant{}, err
	}
	return e.Engine.Acquire(ctx, r, ttl)
}

func (e *engine) Renew(ctx context.Context, rs []lockengine.Request, ttl time.Duration) []error {
	if err := e.ask(); err != nil {
		errs := make([]error, len(rs))
		for i := range errs {
			errs[i] = err
		}
		return errs
	}
	return e.Engine.Renew(ctx, rs, ttl)
}

func (e *engine) Release(ctx context.Context, r lockengine.Request) error {
	if err := e.ask(); err != nil {
		return err
	}
	if e.mute.Load() {
		return lockengine.ErrNoAnswer
	}
	return e.Engine.Release(ctx, r)
}

func (e *engine) Inspect(ctx context.Context, key string) (lockengine.Holder, error) {
	if err := e.ask(); err != nil {
		return lockengine.Holder{}, err
	}
	return e.Engine.Inspect(ctx, key)
}

// A fleet is some processes with the same engines and one source.
type fleet struct {
	source *store
	a, b   *engine
	cfg    switchlock.Config
}

func newFleet() *fleet {
	f := &fleet{source: new(store), a: newEngine(), b: newEngine()}
	f.cfg = switchlock.Config{
		Source: f.source, Engines: map[string]lockengine.Engine{"a": f.a, "b": f.b}, First: "a",
		Lease: 200 * time.Millisecond, TTL: 500 * time.Millisecond,
	}
	return f
}

func (f *fleet) locker(t *testing.T, e lockengine.Engine, ttl time.Duration) *lock.Locker {
	t.Helper()
	l, err := lock.New(e, lock.Config{TTL: ttl})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = l.Close(ctx)
	})
	return l
}

func settled(e switchlock.Engine, epoch int64) func() bool {
	return func() bool { s := e.State(); return s.Epoch == epoch && s.Settled }
}

// A lock that is held moves to the new engine and back, and no other caller gets it meanwhile.
func TestHeldLockMoves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet()
		e, other := open(t, f.cfg), open(t, f.cfg)
		lease, err := f.locker(t, e, f.cfg.TTL).Acquire(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		rival := f.locker(t, other, f.cfg.TTL)
		for epoch, name := range []string{2: "b", 3: "a", 4: "b"} {
			if name == "" {
				continue
			}
			to(t, e, name)
			for _, p := range []switchlock.Engine{e, other} {
				eventually(t, "settled in "+name, func() bool {
					if _, err := rival.TryAcquire(t.Context(), "k"); err == nil {
						t.Fatal("another got the lock")
					}
					return settled(p, int64(epoch))()
				})
			}
			if err := lease.Err(); err != nil {
				t.Fatalf("after the switch to %s: %v", name, err)
			}
		}
		if err := lease.Release(t.Context()); err != nil {
			t.Error(err)
		}
		before := f.a.calls.Load()
		if _, err := rival.Acquire(t.Context(), "k"); err != nil {
			t.Error(err)
		}
		if n := f.a.calls.Load(); n != before {
			t.Errorf("the old engine was asked %d times", n-before)
		}
	})
}

// While locks move, a process that does not know of it yet and one that does exclude each
// other, and the second one needs both engines.
func TestOneKnowsOfTheSwitch(t *testing.T) {
	f := newFleet()
	f.cfg.Lease, f.cfg.TTL = time.Hour, time.Hour // nobody reads the record twice by itself
	knows, ignorant := open(t, f.cfg), open(t, f.cfg)
	if _, err := ignorant.Acquire(t.Context(), theirs, ttl); err != nil {
		t.Fatal(err)
	}
	to(t, knows, "b")
	if _, err := knows.Acquire(t.Context(), mine, ttl); !held(err) {
		t.Errorf("a lock in the old engine alone: %v", err)
	}
	if h, err := f.b.Inspect(t.Context(), "k"); err != nil || h.Owner != "" {
		t.Errorf("what was taken in vain is left: %+v, %v", h, err)
	}
	if err := ignorant.Release(t.Context(), theirs); err != nil {
		t.Error(err)
	}
	if _, err := knows.Acquire(t.Context(), mine, ttl); err != nil {
		t.Error(err)
	}
	if _, err := ignorant.Acquire(t.Context(), theirs, ttl); !held(err) {
		t.Errorf("a lock in both engines: %v", err)
	}
}

func held(err error) bool {
	_, ok := errors.AsType[*lockengine.HeldError](err)
	return ok
}

// Nobody gets a lock while the old engine is dead, until the switch is over.
func TestOldEngineIsDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet()
		e := open(t, f.cfg)
		lease, err := f.locker(t, e, f.cfg.TTL).Acquire(t.Context(), "held")
		if err != nil {
			t.Fatal(err)
		}
		f.a.dead.Store(true)
		to(t, e, "b")
		if _, err := e.Acquire(t.Context(), mine, f.cfg.TTL); !errors.Is(err, lockengine.ErrNotSent) {
			t.Errorf("while locks move: %v", err)
		}
		if err := e.Probe(t.Context(), "k"); err == nil {
			t.Error("Probe succeeds while nobody gets a lock")
		}
		eventually(t, "settled", settled(e, 2))
		if err := lease.Err(); !errors.Is(err, lock.ErrLost) {
			t.Errorf("a lock that could not be renewed: %v", err)
		}
		if _, err := e.Acquire(t.Context(), mine, f.cfg.TTL); err != nil {
			t.Error(err)
		}
	})
}

// With GoneSince, locks are granted again when the locks of the old engine have expired.
func TestOldEngineIsGone(t *testing.T) {
	f := newFleet()
	f.cfg.TTL = time.Hour
	e := open(t, f.cfg)
	eventually(t, "read", func() bool { return e.State().Epoch == 1 })
	f.a.dead.Store(true)
	for _, gone := range []struct {
		since time.Time
		cross time.Duration
	}{{time.Now().Add(-2 * time.Hour), 0}, {time.Now().Add(-time.Hour / 2), time.Hour/2 + time.Hour/50}} {
		source := &store{record: f.source.record}
		r, err := switchlock.Switch(t.Context(), source, switchlock.Change{To: "b", GoneSince: gone.since})
		if err != nil || r.Cross > gone.cross || r.Cross < gone.cross-time.Minute {
			t.Errorf("gone since %v: %+v, %v", gone.since, r, err)
		}
	}
	if _, err := e.To(t.Context(), switchlock.Change{To: "b", GoneSince: time.Now().Add(-2 * time.Hour)}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "settled", settled(e, 2))
	if _, err := e.Acquire(t.Context(), mine, ttl); err != nil {
		t.Error(err)
	}
}

// An engine that grants locks is not gone, whatever the operator says: locks would have two holders.
func TestOldEngineThatGrantsIsNotGone(t *testing.T) {
	f := newFleet()
	e := open(t, f.cfg)
	eventually(t, "read", func() bool { return e.State().Epoch == 1 })
	gone := switchlock.Change{To: "b", GoneSince: time.Now().Add(-time.Hour)}
	if _, err := e.To(t.Context(), gone); err == nil || !strings.Contains(err.Error(), "not gone") {
		t.Errorf("the old engine grants locks: %v", err)
	}
	if r, _ := f.source.Read(t.Context()); r.Epoch != 1 {
		t.Errorf("the record has changed: %+v", r)
	}
	f.a.dead.Store(true)
	if _, err := e.To(t.Context(), gone); err != nil {
		t.Errorf("the old engine is off: %v", err)
	}
}

// Whoever makes a switch has a name that can be printed.
func TestWhoMakesTheSwitch(t *testing.T) {
	f := newFleet()
	e := open(t, f.cfg)
	if _, err := e.To(t.Context(), switchlock.Change{To: "b", By: "al\xffice"}); err == nil {
		t.Error("a name that is not UTF-8 is taken")
	}
}

// Before a switch is over, locks can go back, but not to a third engine.
func TestGoBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet()
		f.cfg.Engines["c"] = newEngine()
		e := open(t, f.cfg)
		to(t, e, "b")
		if _, err := e.To(t.Context(), switchlock.Change{To: "c"}); !errors.Is(err, switchlock.ErrUnsettled) {
			t.Errorf("to a third engine: %v", err)
		}
		if r := to(t, e, "b"); r.Epoch != 2 {
			t.Errorf("to the same engine: %+v", r)
		}
		if r := to(t, e, "a"); r.Epoch != 3 || r.From != "b" {
			t.Errorf("back: %+v", r)
		}
		eventually(t, "settled", settled(e, 3))
		to(t, e, "c")
	})
}

// Tokens grow from engine to engine, whatever these count.
func TestTokensGrow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet()
		f.cfg.Engines["counter"] = &counter{engine: newEngine()}
		e := open(t, f.cfg)
		var last int64
		acquire := func(when string) {
			t.Helper()
			g, err := e.Acquire(t.Context(), mine, f.cfg.TTL)
			if err != nil {
				t.Fatal(err)
			}
			if g.Token < last+1024 {
				t.Errorf("%s: token %d after %d", when, g.Token, last)
			}
			last = g.Token
			if err := e.Release(t.Context(), mine); err != nil {
				t.Error(err)
			}
		}
		acquire("at first")
		for i, name := range []string{"counter", "b", "counter", "a"} {
			r := to(t, e, name)
			acquire("while locks move to " + name)
			eventually(t, "settled", settled(e, r.Epoch))
			acquire("in " + name)
			f.a.dead.Store(i == 1) // what it may have granted is not known at the last switch but one
			acquire("in " + name)
		}
	})
}

// A counter has small tokens.
type counter struct {
	*engine
	n atomic.Int64
}

func (c *counter) Acquire(ctx context.Context, r lockengine.Request, ttl time.Duration) (lockengine.Grant, error) {
	g, err := c.engine.Acquire(ctx, r, ttl)
	g.Token = c.n.Add(1) * 1024
	return g, err
}

// If the record can't be read for a Lease, no lock is granted or renewed until it can be read.
func TestSourceFails(t *testing.T) {
	f := newFleet()
	f.cfg.TTL = ttl
	e := open(t, f.cfg)
	if _, err := e.Acquire(t.Context(), mine, f.cfg.TTL); err != nil {
		t.Fatal(err)
	}
	f.source.fail(errors.New("no database"))
	eventually(t, "refused", func() bool {
		return errors.Is(e.Renew(t.Context(), []lockengine.Request{mine}, f.cfg.TTL)[0], lockengine.ErrNotSent)
	})
	_, err := e.Acquire(t.Context(), theirs, f.cfg.TTL)
	if !errors.Is(err, lockengine.ErrNotSent) || !strings.Contains(err.Error(), "no database") {
		t.Error(err)
	}
	if err := e.Release(t.Context(), mine); err != nil {
		t.Errorf("Release: %v", err)
	}
	f.source.fail(nil)
	eventually(t, "granted", func() bool { _, err := e.Acquire(t.Context(), theirs, f.cfg.TTL); return err == nil })
}

// A source that has lost the record of a switch gets a new record, which keeps all its fields.
func TestRecordIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet()
		e := open(t, f.cfg)
		eventually(t, "read", func() bool { return e.State().Epoch == 1 })
		first := f.source.record
		to(t, e, "b")
		eventually(t, "settled", settled(e, 2))
		f.source.set(first)
		eventually(t, "another switch", settled(e, 3))
		if s := e.State(); s.To != "b" || s.From != "a" {
			t.Errorf("%+v", s)
		}
	})
}

// Requests with a ttl longer than Record.TTL are denied until Retime allows it.
func TestRetime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet()
		e := open(t, f.cfg)
		long := 2 * f.cfg.TTL
		if _, err := e.Acquire(t.Context(), mine, long); !errors.Is(err, lockengine.ErrDenied) {
			t.Errorf("a long ttl: %v", err)
		}
		r, err := e.Retime(t.Context(), f.cfg.Lease, long)
		if err != nil || r.TTL != long || r.Cross < f.cfg.Lease+long {
			t.Fatalf("%+v, %v", r, err)
		}
		eventually(t, "settled", settled(e, 2))
		if _, err := e.Acquire(t.Context(), mine, long); err != nil {
			t.Error(err)
		}
		if _, err := e.Retime(t.Context(), 0, long); err == nil {
			t.Error("a Lease of 0 is accepted")
		}
	})
}

// Callers that wait for a lock while it moves are woken by its release in the new engine.
func TestWaitersMove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet()
		e := open(t, f.cfg)
		l := f.locker(t, e, f.cfg.TTL)
		first, err := l.Acquire(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		other := f.locker(t, open(t, f.cfg), f.cfg.TTL)
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				lease, err := other.Acquire(context.Background(), "k")
				if err != nil {
					t.Error(err)
					return
				}
				if err := lease.Release(context.Background()); err != nil {
					t.Error(err)
				}
			})
		}
		to(t, e, "b")
		eventually(t, "settled", settled(e, 2))
		if err := first.Release(t.Context()); err != nil {
			t.Error(err)
		}
		wg.Wait()
	})
}

func TestConfig(t *testing.T) {
	f := newFleet()
	for name, change := range map[string]func(*switchlock.Config){
		"no source":      func(c *switchlock.Config) { c.Source = nil },
		"unknown engine": func(c *switchlock.Config) { c.First = "c" },
		"nil engine":     func(c *switchlock.Config) { c.Engines = map[string]lockengine.Engine{"a": f.a, "b": nil} },
		"long name": func(c *switchlock.Config) {
			c.Engines = map[string]lockengine.Engine{"a": f.a, strings.Repeat("x", 65): f.b}
		},
		"no UTF-8": func(c *switchlock.Config) {
			c.Engines = map[string]lockengine.Engine{"a": f.a, "\xff": f.b}
		},
		"short lease": func(c *switchlock.Config) { c.Lease = time.Millisecond },
		"negative":    func(c *switchlock.Config) { c.TTL = -1 },
	} {
		cfg := f.cfg
		change(&cfg)
		if e, err := switchlock.New(cfg); err == nil {
			t.Error(name, "is accepted")
			_ = e.Close(context.Background())
		}
	}
	e := open(t, f.cfg)
	if _, err := e.To(t.Context(), switchlock.Change{To: "c"}); err == nil {
		t.Error("an engine that is not there is accepted")
	}
	f.source.set(switchlock.Record{Epoch: 1, From: "c", To: "c", Settled: true, Lease: time.Minute, TTL: time.Minute})
	if _, err := open(t, f.cfg).Acquire(t.Context(), mine, time.Second); !errors.Is(err, lockengine.ErrDenied) {
		t.Errorf("locks are kept where this process has no engine: %v", err)
	}
}

// A lock that the new engine does not grant is released in the old one. If that release fails, the
// acquire has no answer, and the Locker releases the lock.
func TestAcquireInVain(t *testing.T) {
	f := newFleet()
	f.cfg.TTL = time.Hour
	e := open(t, f.cfg)
	to(t, e, "b")
	if _, err := f.b.Acquire(t.Context(), theirs, ttl); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Acquire(t.Context(), mine, ttl); !held(err) {
		t.Errorf("a lock that another has in the new engine: %v", err)
	}
	if h, err := f.a.Inspect(t.Context(), "k"); err != nil || h.Owner != "" {
		t.Errorf("what was taken in vain is left: %+v, %v", h, err)
	}
	f.a.mute.Store(true)
	if _, err := e.Acquire(t.Context(), mine, ttl); !errors.Is(err, lockengine.ErrNoAnswer) || held(err) {
		t.Errorf("what was taken in vain may be left: %v", err)
	}
}

// A renewal that one of two engines does not answer prolongs nothing, and is no loss.
func TestRenewedInOneEngine(t *testing.T) {
	f := newFleet()
	f.cfg.TTL = time.Hour
	e := open(t, f.cfg)
	if _, err := e.Acquire(t.Context(), mine, ttl); err != nil {
		t.Fatal(err)
	}
	to(t, e, "b")
	for _, dead := range []*engine{f.b, f.a} {
		dead.dead.Store(true)
		if err := e.Renew(t.Context(), []lockengine.Request{mine}, ttl)[0]; !errors.Is(err, errDead) || errors.Is(err, lockengine.ErrNotHeld) {
			t.Errorf("renewed in one engine: %v", err)
		}
		dead.dead.Store(false)
		if err := e.Renew(t.Context(), []lockengine.Request{mine}, ttl)[0]; err != nil {
			t.Errorf("renewed in both: %v", err)
		}
	}
}

// A release that was not sent to one engine, and not answered by the other, may have been
// executed.
func TestReleaseIsNotSentToOne(t *testing.T) {
	f := newFleet()
	f.cfg.TTL = time.Hour
	e := open(t, f.cfg)
	to(t, e, "b")
	for _, tt := range []struct{ dead, mute *engine }{{f.a, f.b}, {f.b, f.a}} {
		if _, err := e.Acquire(t.Context(), mine, ttl); err != nil {
			t.Fatal(err)
		}
		tt.dead.dead.Store(true)
		tt.mute.mute.Store(true)
		if err := e.Release(t.Context(), mine); errors.Is(err, lockengine.ErrNotSent) || !errors.Is(err, lockengine.ErrNoAnswer) {
			t.Errorf("one does not answer: %v", err)
		}
		tt.mute.mute.Store(false)
		tt.mute.dead.Store(true)
		if err := e.Release(t.Context(), mine); !errors.Is(err, lockengine.ErrNotSent) {
			t.Errorf("neither is reached: %v", err)
		}
		tt.mute.dead.Store(false)
		tt.dead.dead.Store(false)
		if err := e.Release(t.Context(), mine); err != nil {
			t.Errorf("both answer: %v", err)
		}
	}
}

// No record keeps a process from being scraped.
func TestCollect(t *testing.T) {
	for _, name := range []string{"", "\xff"} {
		if _, err := switchlock.Switch(t.Context(), &store{record: recordOf("a", "a", 1, true)}, switchlock.Change{To: name}); err == nil {
			t.Errorf("a switch to %q is accepted", name)
		}
		f := newFleet()
		f.source.set(recordOf(name, name, 1, true))
		e := open(t, f.cfg)
		eventually(t, "read", func() bool { return e.State().Epoch == 1 })
		if n := testmetric.Sum(t, e, "belay_switch_epoch"); n != 1 {
			t.Errorf("epoch %v of %q", n, name)
		}
	}
}

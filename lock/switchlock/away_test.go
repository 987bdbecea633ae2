package switchlock_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/lock/memlock"
	"github.com/belaygo/belay/lock/switchlock"
)

// A link is a store that can be cut off.
type link struct {
	*store
	cut atomic.Bool
}

func (l *link) Read(ctx context.Context) (switchlock.Record, error) {
	if l.cut.Load() {
		<-ctx.Done()
		return switchlock.Record{}, ctx.Err()
	}
	return l.store.Read(ctx)
}

// A deaf engine grants locks, but its Watch does not return before ctx ends.
type deaf struct{ lockengine.Engine }

func (deaf) Watch(ctx context.Context, _ string, _ func()) (func(), error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// A slow engine takes some time for each request before and after it executes it.
type slow struct {
	lockengine.Engine
	before, after time.Duration
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s slow) Acquire(ctx context.Context, r lockengine.Request, ttl time.Duration) (lockengine.Grant, error) {
	if err := pause(ctx, s.before); err != nil {
		return lockengine.Grant{}, err
	}
	g, err := s.Engine.Acquire(ctx, r, ttl)
	<-time.After(s.after)
	return g, err
}

func (s slow) Renew(ctx context.Context, rs []lockengine.Request, ttl time.Duration) []error {
	if err := pause(ctx, s.before); err != nil {
		errs := make([]error, len(rs))
		for i := range errs {
			errs[i] = err
		}
		return errs
	}
	errs := s.Engine.Renew(ctx, rs, ttl)
	<-time.After(s.after)
	return errs
}

// A slowRelease takes some time for a release before it executes it.
type slowRelease struct {
	lockengine.Engine
	before time.Duration
}

func (s slowRelease) Release(ctx context.Context, r lockengine.Request) error {
	if err := pause(ctx, s.before); err != nil {
		return err
	}
	return s.Engine.Release(ctx, r)
}

func recordOf(from, to string, epoch int64, settled bool) switchlock.Record {
	return switchlock.Record{
		Epoch: epoch, From: from, To: to, Settled: settled,
		Lease: 10 * time.Second, TTL: 30 * time.Second, Cross: 41 * time.Second,
	}
}

// An engine whose Watch does not return delays neither reads of the record nor other requests.
func TestWatchThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{record: recordOf("a", "a", 1, true)}
		e := open(t, switchlock.Config{Source: s, First: "a", Engines: map[string]lockengine.Engine{"a": deaf{memlock.New()}, "b": memlock.New()}})
		if _, err := e.Acquire(t.Context(), mine, ttl); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if stop, err := e.Watch(ctx, "k", func() {}); err == nil {
			defer stop()
		}
		<-time.After(time.Minute)
		if st := e.State(); st.Age > lease {
			t.Errorf("the record was last read %v ago", st.Age)
		}
		ctx, cancel2 := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel2()
		if _, err := e.Acquire(ctx, theirs, ttl); errors.Is(err, lockengine.ErrNotSent) {
			t.Errorf("locks are away: %v", err)
		}
	})
}

// A source that has lost its row gets a new record, and the locks stay where they are.
func TestRowIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{record: recordOf("a", "b", 2, true)}
		e := open(t, switchlock.Config{Source: s, First: "a", Engines: map[string]lockengine.Engine{"a": memlock.New(), "b": memlock.New()}})
		if _, err := e.Acquire(t.Context(), mine, ttl); err != nil {
			t.Fatal(err)
		}
		s.set(switchlock.Record{})
		<-time.After(10 * time.Second)
		if errs := e.Renew(t.Context(), []lockengine.Request{mine}, ttl); errs[0] != nil {
			t.Errorf("%v; the record is %+v", errs[0], e.State().Record)
		}
	})
}

// A lock that is held moves, however many other callers try to acquire it.
func TestHeldLockMovesAmongManyCallers(t *testing.T) {
	for _, names := range [][2]string{{"a", "b"}, {"b", "a"}} {
		t.Run(names[0]+" to "+names[1], func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := time.Millisecond
				a, b := slow{memlock.New(), d, d}, slow{memlock.New(), 10 * d, 10 * d}
				s := &store{record: recordOf(names[0], names[0], 1, true)}
				cfg := switchlock.Config{Source: s, First: "a", Engines: map[string]lockengine.Engine{"a": a, "b": b}}
				holder := open(t, cfg)
				locker, err := lock.New(holder, lock.Config{TTL: 3 * time.Second})
				if err != nil {
					t.Fatal(err)
				}
				defer locker.Close(context.Background())
				lease, err := locker.Acquire(t.Context(), "k")
				if err != nil {
					t.Fatal(err)
				}
				to(t, holder, names[1])
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				var wg sync.WaitGroup
				for i := range 16 { // processes
					other := open(t, cfg)
					l, err := lock.New(other, lock.Config{TTL: 3 * time.Second})
					if err != nil {
						t.Fatal(err)
					}
					wg.Go(func() {
						defer l.Close(context.Background())
						for ctx.Err() == nil {
							_, _ = l.TryAcquire(ctx, "k")
							<-time.After(time.Duration(100+37*i) * time.Microsecond)
						}
					})
				}
				<-time.After(9 * time.Second) // three times the TTL
				if err := lease.Err(); err != nil {
					t.Errorf("lost though both engines work: %v", err)
				}
				stop()
				wg.Wait()
			})
		})
	}
}

// A lock that is released while it is renewed in both engines is free in both, also if a renewal
// that began later has ended before.
func TestReleaseDuringRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := slow{memlock.New(), 50 * time.Millisecond, 0}
		s := &store{record: recordOf("a", "a", 1, true)}
		cfg := switchlock.Config{Source: s, First: "a", Engines: map[string]lockengine.Engine{"a": memlock.New(), "b": b}}
		one, two := open(t, cfg), open(t, cfg)
		if _, err := one.Acquire(t.Context(), mine, 30*time.Second); err != nil {
			t.Fatal(err)
		}
		to(t, one, "b")
		done := make(chan struct{})
		go func() {
			defer close(done)
			one.Renew(t.Context(), []lockengine.Request{mine}, 30*time.Second)
		}()
		<-time.After(10 * time.Millisecond)
		brief, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		one.Renew(brief, []lockengine.Request{mine}, 30*time.Second)
		<-time.After(40 * time.Millisecond) // the first one adopts in b
		if err := one.Release(t.Context(), mine); err != nil {
			t.Fatal(err)
		}
		<-done
		<-time.After(10 * time.Second)
		if _, err := two.Acquire(t.Context(), theirs, ttl); err != nil {
			t.Errorf("10 s after a release that succeeded: %v", err)
		}
	})
}

// A release waits for the renewals that have begun before it, and for no others.
func TestReleaseWaitsForEarlierRenewals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{record: recordOf("a", "a", 1, true)}
		one := open(t, switchlock.Config{Source: s, First: "a", Engines: map[string]lockengine.Engine{
			"a": memlock.New(), "b": slow{memlock.New(), 50 * time.Millisecond, 0},
		}})
		if _, err := one.Acquire(t.Context(), mine, 30*time.Second); err != nil {
			t.Fatal(err)
		}
		to(t, one, "b")
		renew := func() { one.Renew(t.Context(), []lockengine.Request{mine}, 30*time.Second) }
		go renew()
		synctest.Wait()
		released := make(chan error, 1)
		go func() { released <- one.Release(t.Context(), mine) }()
		synctest.Wait()
		begun := time.Now()
		renew()
		if waited := time.Since(begun); waited > 0 {
			t.Errorf("a renewal that begins while the release waits takes %v", waited)
		}
		if err := <-released; err != nil {
			t.Fatal(err)
		}
	})
}

// A renewal that begins while its lock is released leaves it free in both engines.
func TestRenewalDuringRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := slowRelease{memlock.New(), 50 * time.Millisecond}
		s := &store{record: recordOf("a", "a", 1, true)}
		cfg := switchlock.Config{Source: s, First: "a", Engines: map[string]lockengine.Engine{"a": a, "b": memlock.New()}}
		one, two := open(t, cfg), open(t, cfg)
		if _, err := one.Acquire(t.Context(), mine, 30*time.Second); err != nil {
			t.Fatal(err)
		}
		to(t, one, "b")
		done := make(chan error)
		go func() { done <- one.Release(t.Context(), mine) }()
		<-time.After(10 * time.Millisecond) // it has been released in b
		_ = one.Renew(t.Context(), []lockengine.Request{mine}, 30*time.Second)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		<-time.After(10 * time.Second)
		if _, err := two.Acquire(t.Context(), theirs, ttl); err != nil {
			t.Errorf("10 s after a release that succeeded: %v", err)
		}
	})
}

// openTwo returns the engines of two processes. The second can't read the record any more.
func openTwo(t *testing.T) (one, two switchlock.Engine, a *engine) {
	t.Helper()
	s := &store{record: recordOf("a", "a", 1, true)}
	late := &link{store: s}
	a = newEngine()
	engines := map[string]lockengine.Engine{"a": a, "b": memlock.New()}
	one = open(t, switchlock.Config{Source: s, First: "a", Engines: engines})
	two = open(t, switchlock.Config{Source: late, First: "a", Engines: engines})
	for _, e := range []switchlock.Engine{one, two} {
		eventually(t, "read", func() bool { return e.State().Epoch == 1 })
	}
	late.cut.Store(true)
	return one, two, a
}

// Tokens grow from a holder that knows of the switch to one that does not yet.
func TestTokenGrowsWithoutKnowledgeOfTheSwitch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, two, _ := openTwo(t)
		to(t, one, "b")
		g, err := one.Acquire(t.Context(), mine, ttl)
		if err == nil {
			err = one.Release(t.Context(), mine)
		}
		if err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Second)
		h, err := two.Acquire(t.Context(), theirs, ttl)
		if err != nil {
			t.Fatal(err)
		}
		if h.Token <= g.Token {
			t.Errorf("token %d after %d", h.Token, g.Token)
		}
	})
}

// A switch from an engine that is gone is settled only when no process relies on the old record.
// So that engine can work again after that.
func TestGoneIsNotSettledEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, two, a := openTwo(t)
		a.dead.Store(true)
		if _, err := one.To(t.Context(), switchlock.Change{To: "b", GoneSince: time.Now().Add(-time.Hour)}); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the switch is over", func() bool { return one.State().Settled && one.State().To == "b" })
		a.dead.Store(false) // the promise was for the time until the switch is over
		_, err1 := one.Acquire(t.Context(), mine, ttl)
		_, err2 := two.Acquire(t.Context(), theirs, ttl)
		if err1 == nil && err2 == nil {
			t.Error("two holders after the switch was over")
		}
	})
}

// Watch returns an error if the engine can't notify of releases.
func TestWatchWithoutWaker(t *testing.T) {
	s := &store{record: recordOf("a", "a", 1, true)}
	e := open(t, switchlock.Config{Source: s, First: "a", Engines: map[string]lockengine.Engine{"a": memlock.New()}})
	eventually(t, "read", func() bool { return e.State().Epoch == 1 })
	if stop, err := e.Watch(t.Context(), "k", func() {}); err == nil {
		stop()
		t.Error("Watch returned nil, and watches nothing")
	}
}

// A record that replaces a lost one needs both engines of the lost one.
func TestRecordIsLostGoingBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{record: recordOf("b", "a", 3, false)} // a to b was aborted just now
		late := &store{record: recordOf("a", "b", 2, true)}
		engines := map[string]lockengine.Engine{"a": memlock.New(), "b": memlock.New()}
		one := open(t, switchlock.Config{Source: s, First: "a", Engines: engines})
		eventually(t, "read", func() bool { return one.State().Epoch == 3 })
		two := open(t, switchlock.Config{Source: late, First: "a", Engines: engines})
		if _, err := two.Acquire(t.Context(), theirs, ttl); err != nil { // in b alone
			t.Fatal(err)
		}
		s.set(recordOf("a", "a", 1, true)) // a failover loses 2 and 3
		eventually(t, "restored", func() bool { return one.State().Epoch == 4 })
		if _, err := one.Acquire(t.Context(), mine, ttl); err == nil {
			t.Errorf("two holders after the record was restored: %+v", one.State().Record)
		}
	})
}

// Another record of the same epoch, made after the first was lost, is noticed.
func TestAnotherRecordOfTheEpoch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{record: recordOf("a", "b", 2, true)}
		engines := map[string]lockengine.Engine{"a": memlock.New(), "b": memlock.New(), "c": memlock.New()}
		one := open(t, switchlock.Config{Source: s, First: "a", Engines: engines})
		if _, err := one.Acquire(t.Context(), mine, ttl); err != nil { // in b
			t.Fatal(err)
		}
		s.set(recordOf("a", "c", 2, false)) // 2 was lost, and an operator made another 2
		eventually(t, "read", func() bool { return one.State().To == "c" || one.State().Epoch > 2 })
		if _, err := one.Acquire(t.Context(), theirs, ttl); err == nil {
			t.Errorf("a second holder in the same process, %+v", one.State().Record)
		}
	})
}

// A renewal takes no longer than the slower engine does.
func TestBothRenewAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := memlock.New(), memlock.New()
		s := &store{record: recordOf("a", "a", 1, true)}
		d := 600 * time.Millisecond
		e := open(t, switchlock.Config{Source: s, First: "a", Engines: map[string]lockengine.Engine{"a": slow{a, d, 0}, "b": slow{b, d, 0}}})
		ctx := t.Context()
		if _, err := e.Acquire(ctx, mine, ttl); err != nil {
			t.Fatal(err)
		}
		to(t, e, "b")
		if _, err := b.Acquire(ctx, mine, ttl); err != nil { // it is in both
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		if errs := e.Renew(ctx, []lockengine.Request{mine}, ttl); errs[0] != nil {
			t.Error(errs[0])
		}
	})
}

// A switch to a name that nobody has is not settled, processes say why they grant no lock, and
// the locks can go back at once, as none is there.
func TestMisspeltEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		s := &store{record: recordOf("a", "a", 1, true)}
		e := open(t, switchlock.Config{
			Source: s, First: "a", Engines: map[string]lockengine.Engine{"a": memlock.New()},
			Logger: slog.New(slog.NewTextHandler(&log, nil)),
		})
		press := func(c switchlock.Change) {
			t.Helper()
			if _, err := switchlock.Switch(t.Context(), s, c); err != nil {
				t.Fatal(err)
			}
		}
		eventually(t, "read", func() bool { return e.State().Epoch == 1 })
		press(switchlock.Change{To: "aa"})
		<-time.After(2 * time.Minute)
		if s := e.State(); s.To != "aa" || s.Settled {
			t.Errorf("locks are said to be where nobody has an engine: %+v", s)
		}
		if !strings.Contains(log.String(), `kept in \"aa\", and Config.Engines of this process has no engine of that name`) {
			t.Errorf("the log does not say why no lock is granted:\n%s", log.String())
		}
		press(switchlock.Change{To: "a", GoneSince: time.Now().Add(-time.Hour)})
		<-time.After(lease / 4)
		if _, err := e.Acquire(t.Context(), mine, ttl); err != nil {
			t.Error(err)
		}
		eventually(t, "settled", settled(e, 3))
	})
}

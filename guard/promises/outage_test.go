package promises_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/notify"
)

// deaf returns a guard with the policy DBOnly, whose locks outlast any test, on an
// engine that answers.
func (e *env) deaf() (*guard.Guard, *flaky) {
	e.t.Helper()
	engine := &flaky{Engine: e.Engine()}
	locker, err := lock.New(engine, lock.Config{TTL: time.Hour, RequestTimeout: time.Hour})
	wantNil(e.t, err)
	g, err := guard.New(e.db, locker, guard.Config{Service: "deaf", Publisher: &e.Events, OnUnavailable: guard.DBOnly})
	wantNil(e.t, err)
	e.t.Cleanup(func() {
		err := g.Close(bg)
		engine.mute.Store(false)
		if err := errors.Join(err, locker.Close(bg)); err != nil {
			e.t.Error(err)
		}
	})
	return g, engine
}

// TestOutageEndsTheWait: nobody waits for a lock that others have found silent.
func TestOutageEndsTheWait(t *testing.T) {
	t.Run("for an answer", func(t *testing.T) {
		each(t, func(e *env) {
			g, engine := e.deaf()
			engine.mute.Store(true)
			waiting := make(chan error, 1)
			go func() { waiting <- g.Apply(bg, "order:a", guard.Insert(&Order{No: "a"}), guard.Wait(time.Hour)) }()
			testwait.Until(e.t, "the lock is asked for", func() bool { return engine.asked.Load() == 1 })
			wantNil(e.t, g.Apply(bg, "order:b", guard.Insert(&Order{No: "b"})))
			wantNil(e.t, <-waiting)
			e.wantEvent(notify.VerdictDegraded, notify.OutcomeUnknown, "order:b")
		})
	})
	t.Run("for another", func(t *testing.T) {
		eachServer(t, func(e *env) {
			g, engine := e.deaf()
			waiting := make(chan error, 1)
			wantNil(e.t, e.Do(bg, "order:a", func(context.Context, *gorm.DB) error {
				go func() { waiting <- g.Apply(bg, "order:a", guard.Insert(&Order{No: "a"}), guard.Wait(time.Hour)) }()
				testwait.Until(e.t, "the lock is refused", func() bool { return engine.refused.Load() == 1 })
				engine.mute.Store(true)
				return g.Apply(bg, "order:b", guard.Insert(&Order{No: "b"}))
			}))
			wantNil(e.t, <-waiting)
		})
	})
}

// TestDBOnlyBehindAWaiter: a caller that does not wait is busy behind one that still asks a
// lock out of reach. Its policy refuses nobody for that.
func TestDBOnlyBehindAWaiter(t *testing.T) {
	each(t, func(e *env) {
		engine := &outOfReach{Engine: e.Engine()}
		locker, err := lock.New(engine, lock.Config{TTL: time.Hour})
		wantNil(e.t, err)
		g, err := guard.New(e.db, locker, guard.Config{Service: "s", Publisher: &e.Events, OnUnavailable: guard.DBOnly})
		wantNil(e.t, err)
		waiting := make(chan error, 1)
		go func() { waiting <- g.Apply(bg, "order:a", guard.Insert(&Order{No: "a"}), guard.Wait(time.Hour)) }()
		testwait.Until(e.t, "the lock is asked for twice", func() bool { return engine.asked.Load() > 1 })
		err = g.Apply(bg, "order:a", guard.Insert(&Order{No: "a"}))
		wantIs(e.t, err, guard.ErrBusy)
		if errors.Is(err, guard.ErrUnavailable) {
			e.t.Errorf("error is %v, want none of the policy FailClosed", err)
		}
		wantNil(e.t, g.Apply(bg, "order:b", guard.Insert(&Order{No: "b"}))) // begins the outage
		wantNil(e.t, <-waiting)
		wantNil(e.t, g.Close(bg))
		wantNil(e.t, locker.Close(bg))
	})
}

// outOfReach is an engine that nothing reaches.
type outOfReach struct {
	lockengine.Engine
	asked atomic.Int64
}

func (o *outOfReach) Acquire(context.Context, lockengine.Request, time.Duration) (lockengine.Grant, error) {
	o.asked.Add(1)
	return lockengine.Grant{}, lockengine.ErrNotSent
}

// TestUnusableKey: a key that can't be locked is no outage of the others.
func TestUnusableKey(t *testing.T) {
	each(t, func(e *env) {
		g, engine := e.deaf()
		engine.unusable = "bad"
		err := g.Apply(bg, "bad", guard.Insert(&Order{No: "a"}))
		wantIs(e.t, err, lockengine.ErrUnusable)
		if errors.Is(err, guard.ErrUnavailable) {
			e.t.Errorf("error is %v, want it of the key alone", err)
		}
		wantNil(e.t, g.Apply(bg, "good", guard.Insert(&Order{No: "b"})))
		wantMetrics(e.t, g, map[string]float64{"degraded": 0, "without_lock_total": 0})
		e.wantNoEvent()
	})
}

// TestOwnLimitIsNotTheCallers: when the time of Wait is over, the caller's context
// has not ended.
func TestOwnLimitIsNotTheCallers(t *testing.T) {
	each(t, func(e *env) {
		engine := &flaky{Engine: e.Engine()}
		engine.mute.Store(true)
		locker, err := lock.New(engine, lock.Config{TTL: 10 * time.Second})
		wantNil(e.t, err)
		g, err := guard.New(e.db, locker, guard.Config{Service: "s"})
		wantNil(e.t, err)
		err = g.Apply(bg, "k", guard.Insert(&Order{No: "a"}), guard.Wait(20*time.Millisecond))
		wantIs(e.t, err, guard.ErrUnavailable)
		wantIs(e.t, err, lockengine.ErrNoAnswer)
		if errors.Is(err, context.DeadlineExceeded) {
			e.t.Errorf("error is %v, want none of the caller's context", err)
		}
		wantNil(e.t, g.Close(bg))
		engine.mute.Store(false)
		wantNil(e.t, locker.Close(bg))
	})
}

// TestDBOnlyCountsWhoRunsOn: who ends after the outage was in it, too, and the
// report waits for him, but not for ever.
func TestDBOnlyCountsWhoRunsOn(t *testing.T) {
	each(t, func(e *env) {
		g, engine := e.dbOnly(guard.Config{})
		wantNil(e.t, g.Do(bg, "order:a", func(ctx context.Context, tx *gorm.DB) error {
			engine.down[0].Store(false)
			e.awaitEnd(g)
			return guard.Insert(&Order{No: "a"}).Run(ctx, tx)
		}))
		testwait.Until(e.t, "the end of the outage is reported", func() bool { return len(e.Events.All()) == 2 })
		e.wantDegraded(1, notify.OutcomeCommitted, 1)
	})
	for failed, o := range []notify.Outcome{notify.OutcomeCommitted, notify.OutcomeRolledBack} {
		each(t, func(e *env) {
			g, engine := e.dbOnly(guard.Config{EndTimeout: 500 * time.Millisecond})
			for range failed {
				wantIs(e.t, g.Do(bg, "k", func(context.Context, *gorm.DB) error { return errSoldOut }), errSoldOut)
			}
			wantNil(e.t, g.Do(bg, "k", func(context.Context, *gorm.DB) error {
				engine.down[0].Store(false)
				testwait.Until(e.t, "the end of the outage is reported", func() bool { return len(e.Events.All()) == 2 })
				return nil
			}))
			e.wantDegraded(1, o, failed)
		})
	}
}

// TestDBOnlyEndIsTimely: the end of an outage is reported as of then, though the
// report has waited, and another outage has begun.
func TestDBOnlyEndIsTimely(t *testing.T) {
	each(t, func(e *env) {
		g, engine := e.dbOnly(guard.Config{})
		next := make(chan error, 1)
		wantNil(e.t, g.Do(bg, "k1", func(context.Context, *gorm.DB) error {
			engine.down[0].Store(false)
			e.awaitEnd(g)
			engine.down[0].Store(true)
			go func() { next <- g.Apply(bg, "k2", guard.Insert(&Order{No: "a"})) }()
			testwait.Until(e.t, "the second outage is reported", func() bool { return len(e.Events.All()) == 2 })
			return nil
		}))
		wantNil(e.t, <-next)
		testwait.Until(e.t, "the end of the first is reported", func() bool { return len(e.Events.All()) == 3 })
		e.wantDegraded(2, notify.OutcomeCommitted, 1)
		begin, end := e.Events.All()[1], e.Events.All()[2]
		if begin.Outcome != notify.OutcomeUnknown || end.CaughtAt.After(begin.CaughtAt) || end.ID > begin.ID {
			e.t.Errorf("an outage ends by %+v, after another begins by %+v", end, begin)
		}
	})
}

// wantAskedAgain checks that one operation ran without the lock, and that the lock
// was asked for so many times in all, after the outage, too.
func (e *env) wantAskedAgain(g *guard.Guard, engine *flaky, times int64) {
	e.t.Helper()
	testwait.Until(e.t, "the end of the outage is reported", func() bool { return len(e.Events.All()) == 2 })
	if n := engine.asked.Load(); n != times {
		e.t.Errorf("the lock was asked for %d times, want %d", n, times)
	}
	wantMetrics(e.t, g, map[string]float64{"without_lock_total": 1})
}

// queues has a caller wait in the local queue while something happens.
func (e *env) queues(g *guard.Guard, engine *flaky, happens func()) {
	e.t.Helper()
	next := make(chan error, 1)
	wantNil(e.t, g.Do(bg, "k", func(context.Context, *gorm.DB) error {
		before := engine.found.Load()
		go func() { next <- g.Apply(bg, "k", guard.Insert(&Order{No: "a"}), guard.Wait(time.Minute)) }()
		testwait.Until(e.t, "the next one asks where its key is", func() bool { return engine.found.Load() > before })
		happens()
		return nil
	}))
	wantNil(e.t, <-next)
}

// TestDBOnlyQueueOutlivesTheOutage: who has waited in the local queue until the
// lock is back takes the lock.
func TestDBOnlyQueueOutlivesTheOutage(t *testing.T) {
	each(t, func(e *env) {
		g, engine := e.dbOnly(guard.Config{})
		e.queues(g, engine, func() {
			engine.down[0].Store(false)
			e.awaitEnd(g)
		})
		e.wantAskedAgain(g, engine, 2)
		if events := e.Events.All(); len(events) != 2 {
			e.t.Errorf("%d events, want 2: %+v", len(events), events)
		}
	})
}

// TestDBOnlyQueueOutlivesThePlace: who has waited in the local queue until its key is said to be
// elsewhere still belongs to the outage that it has met.
func TestDBOnlyQueueOutlivesThePlace(t *testing.T) {
	each(t, func(e *env) {
		g, engine := e.dbOnly(guard.Config{})
		e.queues(g, engine, func() { engine.moved.Store(true) })
		e.wantDegraded(0, notify.OutcomeUnknown, 1)
	})
}

// TestDBOnlyFailedBeforeTheEnd: who could not ask for the lock, and has seen an
// outage end since, asks again.
func TestDBOnlyFailedBeforeTheEnd(t *testing.T) {
	each(t, func(e *env) {
		g, engine := e.dbOnly(guard.Config{})
		slow := make(chan error, 1)
		go func() { slow <- g.Apply(bg, "slow", guard.Insert(&Order{No: "a"}), guard.Wait(time.Minute)) }()
		testwait.Until(e.t, "the lock is asked for", func() bool { return engine.asked.Load() == 1 })
		wantNil(e.t, g.Apply(bg, "k", guard.Insert(&Order{No: "b"})))
		engine.down[0].Store(false)
		testwait.Until(e.t, "the end of the outage is reported", func() bool { return len(e.Events.All()) == 2 })
		close(engine.slow)
		wantNil(e.t, <-slow)
		e.wantAskedAgain(g, engine, 3)
		e.wantDegraded(1, notify.OutcomeCommitted, 1)
	})
}

// TestDBOnlyLimitOutlivesTheOutage: who has waited for others who run without the
// lock until it is back takes the lock, though his time is up.
func TestDBOnlyLimitOutlivesTheOutage(t *testing.T) {
	each(t, func(e *env) {
		g, engine := e.dbOnly(guard.Config{DBOnlyLimit: 1})
		next := make(chan error, 1)
		wantNil(e.t, g.Do(bg, "k1", func(context.Context, *gorm.DB) error {
			before := engine.found.Load()
			go func() {
				next <- g.Apply(bg, "k2", guard.Insert(&Order{No: "a"}), guard.Wait(10*time.Millisecond))
			}()
			testwait.Until(e.t, "the next one asks where its key is", func() bool { return engine.found.Load() > before })
			engine.down[0].Store(false)
			e.awaitEnd(g)
			return nil
		}))
		wantNil(e.t, <-next)
		e.wantAskedAgain(g, engine, 2)
		e.wantDegraded(1, notify.OutcomeCommitted, 1)
		engine.down[0].Store(true)
		wantNil(e.t, g.Apply(bg, "k3", guard.Insert(&Order{No: "b"}))) // there is a place
	})
}

// TestDegradedWithoutAnswer: a lock that does not answer does not hold up a
// caller who may go on without.
func TestDegradedWithoutAnswer(t *testing.T) {
	each(t, func(e *env) {
		g, engine := e.dbOnly(guard.Config{})
		engine.mute.Store(true)
		wantNil(e.t, g.Apply(bg, "order:a", guard.Insert(&Order{No: "a"})))
		wantIs(e.t, g.Apply(bg, "order:a", guard.Insert(&Order{No: "a"})), guard.ErrDuplicate)
		wait := guard.Wait(50 * time.Millisecond)
		wantNil(e.t, g.Do(bg, "b", func(ctx context.Context, tx *gorm.DB) error { // on the other node: it waits in vain, and still gets a place
			wantIs(e.t, g.Apply(bg, "b", guard.Insert(&Order{No: "b"}), wait), guard.ErrBusy)
			return guard.Insert(&Order{No: "b"}).Run(ctx, tx)
		}, wait))
		engine.mute.Store(false)
		if n := e.count(&Order{}); n != 2 {
			e.t.Errorf("%d rows, want 2", n)
		}
	})
}

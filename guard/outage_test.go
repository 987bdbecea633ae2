package guard_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/lock"
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
			go func() { waiting <- g.Do(bg, "order:a", guard.Insert(&Order{No: "a"}), guard.Wait(time.Hour)) }()
			testwait.Until(e.t, "the lock is asked for", func() bool { return engine.asked.Load() == 1 })
			wantNil(e.t, g.Do(bg, "order:b", guard.Insert(&Order{No: "b"})))
			wantNil(e.t, <-waiting)
			e.wantEvent(notify.Degraded, notify.Unknown, "order:b")
		})
	})
	t.Run("for another", func(t *testing.T) {
		eachServer(t, func(e *env) {
			g, engine := e.deaf()
			waiting := make(chan error, 1)
			wantNil(e.t, e.Do(bg, "order:a", func(context.Context, *gorm.DB) error {
				go func() { waiting <- g.Do(bg, "order:a", guard.Insert(&Order{No: "a"}), guard.Wait(time.Hour)) }()
				testwait.Until(e.t, "the lock is refused", func() bool { return engine.refused.Load() == 1 })
				engine.mute.Store(true)
				return g.Do(bg, "order:b", guard.Insert(&Order{No: "b"}))
			}))
			wantNil(e.t, <-waiting)
		})
	})
}

// TestUnusableKey: a key that can't be locked is no outage of the others.
func TestUnusableKey(t *testing.T) {
	each(t, func(e *env) {
		g, engine := e.deaf()
		engine.unusable = "bad"
		err := g.Do(bg, "bad", guard.Insert(&Order{No: "a"}))
		wantIs(e.t, err, lock.ErrUnusable)
		if errors.Is(err, guard.ErrUnavailable) {
			e.t.Errorf("error is %v, want it of the key alone", err)
		}
		wantNil(e.t, g.Do(bg, "good", guard.Insert(&Order{No: "b"})))
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
		err = g.Do(bg, "k", guard.Insert(&Order{No: "a"}), guard.Wait(20*time.Millisecond))
		wantIs(e.t, err, guard.ErrUnavailable)
		wantIs(e.t, err, lock.ErrNoAnswer)
		if errors.Is(err, context.DeadlineExceeded) {
			e.t.Errorf("error is %v, want none of the caller's context", err)
		}
		wantNil(e.t, g.Close(bg))
		engine.mute.Store(false)
		wantNil(e.t, locker.Close(bg))
	})
}

package promises_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/notify"
)

// touchy panics when a step begins or ends.
type touchy struct{ begin, end guard.Step }

func (o touchy) Start(ctx context.Context, s guard.Step, _ string) (context.Context, func(error)) {
	if s == o.begin {
		panic("observer")
	}
	return ctx, func(error) {
		if s == o.end {
			panic("observer")
		}
	}
}

func (touchy) Trace(context.Context) notify.Trace { return notify.Trace{} }

type touchyPublisher struct{}

func (touchyPublisher) Publish(context.Context, notify.Event) error { panic("publisher") }

// TestPanicsLeaveNothingLocked: whoever's code panics, the lock is released, and
// so is the place among those who run without one.
func TestPanicsLeaveNothingLocked(t *testing.T) {
	nop := func(context.Context, *gorm.DB) error { return nil }
	do := func(t *testing.T, g *guard.Guard, key string) {
		t.Helper()
		defer func() {
			if recover() == nil {
				t.Error("no panic")
			}
		}()
		_ = g.Do(bg, key, nop)
	}
	each(t, func(e *env) {
		for _, o := range []touchy{
			{begin: guard.StepDo}, {begin: guard.StepLock}, {begin: guard.StepTransaction},
			{end: guard.StepDo}, {end: guard.StepLock}, {end: guard.StepTransaction},
		} {
			locker, err := lock.New(e.Engine(), lock.Config{})
			wantNil(e.t, err)
			g, err := guard.New(e.db, locker, guard.Config{Service: "s", Publisher: &e.Events, Observer: o})
			wantNil(e.t, err)
			do(e.t, g, "k")
			wantNil(e.t, e.Do(bg, "k", nop)) // another process
			ctx, cancel := context.WithTimeout(bg, 10*time.Second)
			wantNil(e.t, g.Close(ctx))
			wantNil(e.t, locker.Close(ctx))
			cancel()
		}
		engine := &flaky{Engine: e.Engine()}
		engine.down[0].Store(true)
		locker, err := lock.New(engine, lock.Config{TTL: time.Second})
		wantNil(e.t, err)
		g, err := guard.New(e.db, locker, guard.Config{
			Service: "s", Publisher: touchyPublisher{}, OnUnavailable: guard.DBOnly, DBOnlyLimit: 1,
		})
		wantNil(e.t, err)
		do(e.t, g, "k")
		wantNil(e.t, g.Do(bg, "k", nop))
		wantNil(e.t, g.Close(bg))
		ctx, cancel := context.WithTimeout(bg, 10*time.Second)
		defer cancel()
		wantNil(e.t, locker.Close(ctx))
	})
}

func TestPanic(t *testing.T) {
	each(t, func(e *env) {
		func() {
			defer func() {
				if r := recover(); r != "boom" {
					e.t.Errorf("recovered %v, want the operation's panic", r)
				}
			}()
			_ = e.Do(bg, "k", func(_ context.Context, tx *gorm.DB) error {
				if err := tx.Create(&Order{No: "a"}).Error; err != nil {
					return err
				}
				panic("boom")
			})
		}()
		if n := e.count(&Order{}); n != 0 {
			e.t.Errorf("%d rows after a panic, want none", n)
		}
		e.wantFree("k")
		e.wantNoEvent()
	})
}

// TestPanicWithALostLock: a lock that was lost while the operation ran is reported, however
// that ended.
func TestPanicWithALostLock(t *testing.T) {
	each(t, func(e *env) {
		func() {
			defer func() { _ = recover() }()
			_ = e.Do(bg, "k", func(context.Context, *gorm.DB) error {
				e.Forget("k")
				panic("boom")
			})
		}()
		e.wantEvent(notify.VerdictLost, notify.OutcomeRolledBack, "k")
	})
}

// TestGoexit: an operation may end its goroutine, as t.FailNow does.
func TestGoexit(t *testing.T) {
	each(t, func(e *env) {
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = e.Do(bg, "k", func(_ context.Context, tx *gorm.DB) error {
				_ = tx.Create(&Order{No: "a"}).Error
				runtime.Goexit()
				return nil
			})
		}()
		<-done
		if n := e.count(&Order{}); n != 0 {
			e.t.Errorf("%d rows, want none", n)
		}
		pool, err := e.db.DB()
		wantNil(e.t, err)
		if n := pool.Stats().InUse; n != 0 {
			e.t.Errorf("%d connections are in use", n)
		}
		e.wantFree("k")
		e.wantNoEvent()
	})
}

// inspectPanics is an engine that panics when it is asked who holds a key.
type inspectPanics struct{ lockengine.Engine }

func (inspectPanics) Inspect(context.Context, string) (lockengine.Holder, error) { panic("boom") }

// TestPanicAfterTheOperation: somebody's code may panic there, too.
func TestPanicAfterTheOperation(t *testing.T) {
	each(t, func(e *env) {
		e.create(&Order{No: "a"})
		locker, err := lock.New(inspectPanics{e.Engine()}, lock.Config{})
		wantNil(e.t, err)
		defer locker.Close(bg)
		g, err := guard.New(e.db, locker, guard.Config{Service: "s"})
		wantNil(e.t, err)
		func() {
			defer func() {
				if r := recover(); r != "boom" {
					e.t.Errorf("recovered %v, want the engine's panic", r)
				}
			}()
			_ = g.Do(bg, "k", func(_ context.Context, tx *gorm.DB) error {
				_ = tx.Create(&Order{No: "a"}).Error
				return nil
			}, guard.Protects(&Order{No: "a"}))
		}()
		pool, err := e.db.DB()
		wantNil(e.t, err)
		if n := pool.Stats().InUse; n != 0 {
			e.t.Errorf("%d connections are in use", n)
		}
		e.wantFree("k")
	})
}

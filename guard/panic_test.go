package guard_test

import (
	"context"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/lock"
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

package promises_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"gorm.io/gorm"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/notify"
)

// TestCombineAnswersAll: wherever the time for the changes ends, each caller gets an
// answer, and its change is made once.
func TestCombineAnswersAll(t *testing.T) {
	each(t, func(e *env) {
		const callers, rounds = 32, 20
		e.create(&Stock{ID: 1, Left: callers * rounds})
		var answered atomic.Int64
		for i := range rounds {
			e.inside().TurnLimit(time.Duration(i) * 10 * time.Microsecond)
			for range callers {
				go func() {
					defer answered.Add(1)
					if err := e.Apply(bg, "sku:1", guard.Update(&Stock{ID: 1}, take), guard.Wait(time.Minute), guard.Combine()); err != nil {
						e.t.Error(err)
					}
				}()
			}
			testwait.Until(e.t, "all have an answer", func() bool { return answered.Load() == int64(i+1)*callers })
		}
		if s := e.stock(1); s.Left != 0 || s.Version != callers*rounds+1 {
			e.t.Errorf("the stock is %+v", s)
		}
	})
}

// trap is an Observer, and a Publisher, that panics once when it is set.
type trap struct{ step, publish atomic.Bool }

func (p *trap) Start(ctx context.Context, s guard.Step, _ string) (context.Context, func(error)) {
	return ctx, func(error) {
		if s == guard.StepTransaction && p.step.Swap(false) {
			panic("observer")
		}
	}
}

func (*trap) Trace(context.Context) notify.Trace { return notify.Trace{} }

func (p *trap) Publish(context.Context, notify.Event) error {
	if p.publish.Swap(false) {
		panic("publisher")
	}
	return nil
}

// TestCombinePanicsAfterTheCommit: what is committed is not made again, and those who did
// not panic get their answer.
func TestCombinePanicsAfterTheCommit(t *testing.T) {
	each(t, func(e *env) {
		var p trap
		locker, err := lock.New(e.Engine(), lock.Config{})
		wantNil(e.t, err)
		e.Guard.Guard, err = guard.New(e.db, locker, guard.Config{Service: "s", Publisher: &p, Observer: &p})
		wantNil(e.t, err)
		e.t.Cleanup(func() {
			wantNil(e.t, errors.Join(e.Close(bg), locker.Close(bg)))
		})
		e.create(&Stock{ID: 1, Left: 100})
		for i, where := range []*atomic.Bool{&p.step, &p.publish} {
			callers := takers(4)
			callers[0].leads = true
			callers[2].change = func(s *Stock) error {
				where.Store(true)
				e.Forget("sku:1") // which is published
				return take(s)
			}
			e.crew(callers...)
			if s := e.stock(1); s.Left != 96-4*i || s.Version != dbguard.Version(5+4*i) {
				e.t.Errorf("the stock is %+v", s)
			}
			if callers[0].err == nil {
				e.t.Error("the leader did not panic")
			}
			e.wantShared(98-4*i, dbguard.Version(3+4*i), callers[1:]...)
		}
	})
}

// TestCombineHangingLeader: those behind a change that hangs are in their line again, and
// wait no longer than they want to.
func TestCombineHangingLeader(t *testing.T) {
	each(t, func(e *env) {
		e.create(&Stock{ID: 1, Left: 100})
		ctx, cancel := context.WithCancel(bg)
		callers := takers(4)
		callers[2].ctx = ctx
		callers[0].change = func(s *Stock) error {
			testwait.Until(e.t, "the others queue again", func() bool { return e.inside().Queued("sku:1") == 2 })
			cancel()
			testwait.Until(e.t, "the impatient one has its answer", callers[2].answered.Load)
			return take(s)
		}
		e.crewWithin(callers...)
		wantIs(e.t, callers[2].err, guard.ErrBusy)
		wantIs(e.t, callers[2].err, context.Canceled)
		if held, ok := errors.AsType[*lockengine.HeldError](callers[2].err); !ok || held.Key != "sku:1" || held.Holder.Slot != -1 {
			e.t.Errorf("the error is %+v, want the key and no slot", held)
		}
		e.wantShared(99, 2, callers[0], callers[1], callers[3])
	})
}

// TestCombineWithoutAChange: when all changes fail, nothing is committed, and no event
// says so.
func TestCombineWithoutAChange(t *testing.T) {
	each(t, func(e *env) {
		e.create(&Stock{ID: 1})
		callers := takers(3)
		callers[1].change = func(s *Stock) error {
			e.Forget("sku:1")
			return take(s)
		}
		e.crew(callers...)
		for _, c := range callers {
			wantIs(e.t, c.err, errSoldOut)
		}
		if ev := e.wantEvent(notify.VerdictLost, notify.OutcomeRolledBack, "sku:1"); ev.Count != 3 {
			e.t.Errorf("the event counts %d, want 3", ev.Count)
		}
	})
}

// TestCombineLosesItsConnection: one that breaks when the row is loaded costs nobody
// anything.
func TestCombineLosesItsConnection(t *testing.T) {
	each(t, func(e *env) {
		e.create(&Stock{ID: 1, Left: 100})
		var armed atomic.Bool
		wantNil(e.t, e.db.Callback().Query().Before("gorm:query").Register("test:break", func(tx *gorm.DB) {
			if tx.Statement.Table == "stocks" && armed.Swap(false) {
				_ = tx.AddError(driver.ErrBadConn)
			}
		}))
		callers := takers(3)
		armed.Store(true)
		e.crew(callers...)
		for _, c := range callers {
			wantNil(e.t, c.err)
		}
		if s := e.stock(1); s.Left != 97 || s.Version != 4 {
			e.t.Errorf("the stock is %+v", s)
		}
	})
}

// TestCombineCountsEachWait: each caller has waited once, whether it leads, is led, or
// runs alone in the end.
func TestCombineCountsEachWait(t *testing.T) {
	each(t, func(e *env) {
		wantNil(e.t, e.db.Callback().Update().Before("gorm:update").Register("test:refuse", func(tx *gorm.DB) {
			if s, ok := tx.Statement.Dest.(*Stock); ok && s.Left < 0 {
				_ = tx.AddError(errSoldOut)
			}
		}))
		e.create(&Stock{ID: 1, Left: 100})
		callers := takers(5)
		callers[4].change = func(s *Stock) error {
			s.Left = -1
			return nil
		}
		e.crew(callers...)
		wantIs(e.t, callers[4].err, errSoldOut)
		registry := prometheus.NewRegistry()
		registry.MustRegister(e.Guard)
		families, err := registry.Gather()
		wantNil(e.t, err)
		for _, f := range families {
			if n := f.Metric[0].Histogram.GetSampleCount(); f.GetName() == "belay_guard_lock_seconds" && n != 6 {
				e.t.Errorf("%d waits are counted, want 6", n)
			}
		}
	})
}

// TestCombineAfterTheEnd: a caller whose context has ended before its call is told that
// and no more, as one that does not combine.
func TestCombineAfterTheEnd(t *testing.T) {
	each(t, func(e *env) {
		e.create(&Stock{ID: 1, Left: 9})
		ctx, cancel := context.WithCancel(bg)
		cancel()
		e.crewOf(func() {
			for _, opts := range [][]guard.Option{{guard.Wait(time.Minute)}, {guard.Wait(time.Minute), guard.Combine()}} {
				err := e.Apply(ctx, "sku:1", guard.Update(&Stock{ID: 1}, take), opts...)
				if wantIs(e.t, err, context.Canceled); errors.Is(err, guard.ErrBusy) {
					e.t.Errorf("the error is %v", err)
				}
			}
		}, takers(1)...)
	})
}

package promises_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/guard/internal/inside"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/notify"
)

// watcher is an Observer that counts steps, by name and by how they ended.
type watcher struct {
	mu    sync.Mutex
	steps map[string]int
}

func (w *watcher) count(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.steps[what]++
}

func (w *watcher) Start(ctx context.Context, s guard.Step, _ string) (context.Context, func(error)) {
	w.count(string(s))
	return ctx, func(err error) { w.count(fmt.Sprint(s, " ended: ", err)) }
}

func (*watcher) Trace(context.Context) notify.Trace { return notify.Trace{} }

// TestCombineIsObserved: each caller of a crew has its own steps, and the metrics say how
// many there were.
func TestCombineIsObserved(t *testing.T) {
	each(t, func(e *env) {
		w := e.watched()
		e.create(&Stock{ID: 1, Left: 3})
		e.crew(takers(4)...)
		want := map[string]int{ // one is that which the others queued behind
			"do": 5, "do ended: <nil>": 4, "do ended: sold out": 1,
			"lock": 5, "lock ended: <nil>": 5,
			"transaction": 5, "transaction ended: <nil>": 4, "transaction ended: sold out": 1,
		}
		if !maps.Equal(w.steps, want) {
			e.t.Errorf("the steps are %v, want %v", w.steps, want)
		}
		if n := e.metric("belay_guard_crew_size"); n != 3 {
			e.t.Errorf("the size of the crew is %v, want 3", n)
		}
		e.wantCombined(map[string]int{"shared": 4})
	})
}

// TestCombineCountsEachCallOnce: a call counts when it ends, with what became of it last.
func TestCombineCountsEachCallOnce(t *testing.T) {
	boom := func(*Stock) error { panic("boom") }
	for name, c := range map[string]struct {
		spoil func(e *env, all []*caller) (ready func())
		want  map[string]int
	}{
		"none of these": {func(*env, []*caller) func() { return nil }, map[string]int{"shared": 4}},
		"a panic": {func(_ *env, all []*caller) func() {
			all[0].change, all[3].change = boom, boom
			return nil
		}, map[string]int{"shared": 4}},
		"a refused value": {func(e *env, all []*caller) func() {
			wantNil(e.t, e.db.Callback().Update().Before("gorm:update").Register("test:refuse", func(tx *gorm.DB) {
				if s, ok := tx.Statement.Dest.(*Stock); ok && s.Left < 0 {
					_ = tx.AddError(errSoldOut)
				}
			}))
			all[2].change = func(s *Stock) error { s.Left = -1; return nil }
			return nil
		}, map[string]int{"alone": 4}},
		"a slow change": {func(e *env, all []*caller) func() {
			e.inside().TurnLimit(500 * time.Millisecond)
			all[3].change = func(s *Stock) error {
				testwait.Until(e.t, "the others are done", func() bool { return e.stock(1).Left < 100 })
				return take(s)
			}
			return nil
		}, map[string]int{"shared": 3, "slow": 1}},
		"a wait that ends": {func(e *env, all []*caller) func() {
			ctx, cancel := context.WithCancel(bg)
			all[2].ctx = ctx
			return func() {
				cancel()
				testwait.Until(e.t, "the caller has left", func() bool { return e.inside().Queued("sku:1") == 2 })
			}
		}, map[string]int{"shared": 3, "none": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			e := onSQLite(t)
			e.create(&Stock{ID: 1, Left: 100})
			e.inside().NoTurnLimit()
			callers := takers(4)
			e.gather(c.spoil(e, callers), callers)
			e.wantCombined(c.want)
		})
	}
}

// metric returns the sum of a metric over its labels.
func (e *env) metric(name string) (sum float64) {
	e.t.Helper()
	for _, m := range e.metrics(name) {
		sum += m.GetCounter().GetValue() + m.GetHistogram().GetSampleSum()
	}
	return sum
}

func (e *env) metrics(name string) []*dto.Metric {
	e.t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(e.Guard)
	families, err := registry.Gather()
	wantNil(e.t, err)
	for _, f := range families {
		if f.GetName() == name {
			return f.Metric
		}
	}
	return nil
}

// transactions returns how many transactions there were.
func (e *env) transactions() (n int) {
	e.t.Helper()
	for _, m := range e.metrics("belay_guard_transaction_seconds") {
		n += int(m.Histogram.GetSampleCount())
	}
	return n
}

// wantCombined checks how many calls with Combine there were, by result.
func (e *env) wantCombined(want map[string]int) {
	e.t.Helper()
	got := make(map[string]int)
	for _, m := range e.metrics("belay_guard_combined_total") {
		for _, l := range m.Label {
			if n := int(m.Counter.GetValue()); l.GetName() == "result" && n > 0 {
				got[l.GetValue()] = n
			}
		}
	}
	if !maps.Equal(got, want) {
		e.t.Errorf("calls were counted as %v, want %v", got, want)
	}
}

// TestCombineLeavesAWaitingCrew: a caller whose context ends while its crew waits for the
// row has its answer at once.
func TestCombineLeavesAWaitingCrew(t *testing.T) {
	each(t, func(e *env) {
		e.create(&Stock{ID: 1, Left: 9})
		loads, pass := make(chan struct{}), make(chan struct{})
		var once sync.Once
		ctx, cancel := context.WithCancel(bg)
		callers := takers(5)
		callers[1].ctx, callers[4].ctx = ctx, ctx
		var all sync.WaitGroup
		all.Go(func() {
			e.crewOf(func() {
				wantNil(e.t, e.db.Callback().Query().Before("gorm:query").Register("test:hold", func(tx *gorm.DB) {
					if tx.Statement.Table == "stocks" {
						once.Do(func() {
							close(loads)
							<-pass
						})
					}
				}))
			}, callers...)
		})
		<-loads
		cancel()
		testwait.Until(e.t, "they have their answers", func() bool { return callers[1].answered.Load() && callers[4].answered.Load() })
		close(pass)
		all.Wait()
		for _, c := range []*caller{callers[1], callers[4]} {
			wantIs(e.t, c.err, context.Canceled)
		}
		e.wantShared(8, 2, callers[0], callers[2], callers[3])
		e.wantNoEvent()
	})
}

// TestCombineCountsOwnFailures: a failure of the lock is also the answer of a caller whose
// own change had failed, so the event counts it.
func TestCombineCountsOwnFailures(t *testing.T) {
	eachServer(t, func(e *env) {
		e.create(&Stock{ID: 1, Left: 100})
		callers := takers(4)
		callers[1].change = func(*Stock) error { return errSoldOut }
		callers[3].change = func(s *Stock) error {
			e.loseTo("sku:1", guard.Update(&Stock{ID: 1}, take).Run)
			return take(s)
		}
		e.crew(callers...)
		for _, c := range callers {
			wantIs(e.t, c.err, guard.ErrIntercepted)
		}
		if ev := e.wantEvent(notify.VerdictOverlap, notify.OutcomeRefused, "sku:1"); ev.Count != 4 {
			e.t.Errorf("the event counts %d, want 4", ev.Count)
		}
	})
}

// TestCombineCountsNoLateCaller: a caller whose change came too late for its crew runs alone, and
// those behind it are in the next crew. A failure of the crew's lock is not theirs, and the event
// does not count them.
func TestCombineCountsNoLateCaller(t *testing.T) {
	eachServer(t, func(e *env) {
		e.create(&Stock{ID: 1, Left: 100})
		e.inside().TurnLimit(200 * time.Millisecond)
		callers := takers(5)
		var once sync.Once
		callers[0].change = func(s *Stock) error { // which its crew waits for, however slow it is
			once.Do(func() { e.loseTo("sku:1", guard.Update(&Stock{ID: 1}, take).Run) })
			return take(s)
		}
		callers[2].change = func(s *Stock) error {
			testwait.Until(e.t, "the leader has its answer", callers[0].answered.Load)
			return take(s)
		}
		e.crewWithin(callers...)
		refused := 0
		for _, c := range callers {
			if c.err != nil {
				wantIs(e.t, c.err, guard.ErrIntercepted)
				refused++
			}
		}
		if ev := e.wantEvent(notify.VerdictOverlap, notify.OutcomeRefused, "sku:1"); ev.Count != refused {
			e.t.Errorf("the event counts %d, and %d were refused", ev.Count, refused)
		}
		if s := e.stock(1); s.Left != 100-1-(5-refused) {
			e.t.Errorf("%d were refused, the stock is %+v", refused, s)
		}
	})
}

// TestCombineWithALease: a caller that holds the key already does not queue behind itself.
func TestCombineWithALease(t *testing.T) {
	each(t, func(e *env) {
		locker, err := lock.New(e.Engine(), lock.Config{})
		wantNil(e.t, err)
		g, err := guard.New(e.db, locker, guard.Config{Service: "s", Publisher: &e.Events})
		wantNil(e.t, err)
		e.t.Cleanup(func() { wantNil(e.t, errors.Join(g.Close(bg), locker.Close(bg))) })
		e.create(&Stock{ID: 1, Left: 9})
		lease, err := locker.Acquire(bg, "sku:1")
		wantNil(e.t, err)
		var others sync.WaitGroup
		others.Go(func() {
			if err := g.Apply(bg, "sku:1", guard.Update(&Stock{ID: 1}, take), guard.Wait(1<<40), guard.Combine()); err != nil {
				e.t.Error(err)
			}
		})
		testwait.Until(e.t, "the other leads", func() bool { return inside.Of(g).Lines() == 1 })
		wantNil(e.t, g.Apply(lease.Context(), "sku:1", guard.Update(&Stock{ID: 1}, take), guard.Wait(1<<40), guard.Combine()))
		wantNil(e.t, lease.Release(bg))
		others.Wait()
		if s := e.stock(1); s.Left != 7 {
			e.t.Errorf("the stock is %+v", s)
		}
	})
}

// watched gives e a guard whose steps are counted.
func (e *env) watched() *watcher {
	e.t.Helper()
	w := &watcher{steps: make(map[string]int)}
	locker, err := lock.New(e.Engine(), lock.Config{})
	wantNil(e.t, err)
	e.Guard.Guard, err = guard.New(e.db, locker, guard.Config{Service: "s", Publisher: &e.Events, Observer: w})
	wantNil(e.t, err)
	e.t.Cleanup(func() { wantNil(e.t, errors.Join(e.Close(bg), locker.Close(bg))) })
	return w
}

// TestCombineObservesALeaver: the steps of a caller that leaves between two attempts end
// with its own error.
func TestCombineObservesALeaver(t *testing.T) {
	each(t, func(e *env) {
		w := e.watched()
		e.prepareDeadlocks()
		e.create(&Stock{ID: 1, Left: 9})
		e.deadlocks(1)
		ctx, cancel := context.WithCancel(bg)
		callers := takers(3)
		callers[1].ctx = ctx
		attempts := make(map[gorm.ConnPool]bool)
		wantNil(e.t, e.db.Callback().Query().Before("gorm:query").Register("test:hold", func(tx *gorm.DB) {
			if tx.Statement.Table != "stocks" {
				return
			}
			if attempts[tx.Statement.ConnPool] = true; len(attempts) == 2 {
				cancel()
				testwait.Until(e.t, "the caller has left", callers[1].answered.Load)
			}
		}))
		e.crew(callers...)
		wantIs(e.t, callers[1].err, context.Canceled)
		e.wantShared(8, 2, callers[0], callers[2])
		want := map[string]int{
			"do": 4, "do ended: <nil>": 3, "do ended: context canceled": 1,
			"lock": 4, "lock ended: <nil>": 4,
			"transaction": 5, "transaction ended: <nil>": 3, "transaction ended: context canceled": 1,
			"transaction ended: " + errDeadlock.Error(): 1,
		}
		if !maps.Equal(w.steps, want) {
			e.t.Errorf("the steps are %v, want %v", w.steps, want)
		}
	})
}

// TestCombineObservesALineAgain: a caller that has to lead after an attempt of others has
// ended the step of that attempt.
func TestCombineObservesALineAgain(t *testing.T) {
	each(t, func(e *env) {
		w := e.watched()
		e.prepareDeadlocks()
		e.create(&Stock{ID: 1, Left: 9})
		e.deadlocks(1)
		callers := takers(2)
		made := 0
		callers[0].change = func(s *Stock) error {
			if made++; made == 2 { // the other one leads
				testwait.Until(e.t, "the other one is given back", func() bool { return e.inside().Lines() == 1 })
			}
			return take(s)
		}
		e.inside().TurnLimit(500 * time.Millisecond)
		e.gather(nil, callers)
		e.wantShared(8, 2, callers...)
		want := map[string]int{
			"do": 3, "do ended: <nil>": 3,
			"transaction": 5, "transaction ended: <nil>": 3,
			"transaction ended: " + errDeadlock.Error():                           1,
			"transaction ended: guard: the call runs in a transaction of its own": 1,
			"lock": 4, "lock ended: <nil>": 4,
		}
		if !maps.Equal(w.steps, want) {
			e.t.Errorf("the steps are %v, want %v", w.steps, want)
		}
	})
}

package promises_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/notify"
)

// A caller of a crew changes the stock 1.
type caller struct {
	ctx    context.Context
	change func(*Stock) error
	leads  bool // and panics after the COMMIT

	row      Stock
	err      error
	answered atomic.Bool
}

// crew has callers change the stock 1 in one transaction, in their order: they queue
// behind an operation that has the key. It returns when all have an answer.
func (e *env) crew(callers ...*caller) {
	e.t.Helper()
	e.inside().NoTurnLimit()
	e.crewWithin(callers...)
}

// crewWithin is crew with a limit for the changes: who is behind a slow one is in the
// next transaction.
func (e *env) crewWithin(callers ...*caller) {
	e.t.Helper()
	e.gather(nil, callers)
}

// crewOf is crew, and calls ready when all have gathered.
func (e *env) crewOf(ready func(), callers ...*caller) {
	e.t.Helper()
	e.inside().NoTurnLimit()
	e.gather(ready, callers)
}

func (e *env) gather(ready func(), callers []*caller) {
	e.t.Helper()
	var all sync.WaitGroup
	wantNil(e.t, e.Do(bg, "sku:1", func(context.Context, *gorm.DB) error {
		for i, c := range callers {
			c.row, c.err = Stock{ID: 1}, errors.New("no answer")
			all.Go(func() {
				defer c.answered.Store(true)
				defer func() { _ = recover() }()
				c.err = e.Apply(cmp.Or(c.ctx, bg), "sku:1", guard.Update(&c.row, c.change), guard.Wait(time.Minute), guard.Combine())
			})
			testwait.Until(e.t, "the caller queues", func() bool { return e.inside().Lines() == 1 && e.inside().Queued("sku:1") == i })
		}
		if ready != nil {
			ready()
		}
		return nil
	}))
	all.Wait()
	if n := e.inside().Lines(); n != 0 {
		e.t.Errorf("%d lines are left", n)
	}
	for i, c := range callers {
		if c.err != nil && !c.leads && c.row != (Stock{ID: 1}) {
			e.t.Errorf("caller %d has the error %v and the row %+v", i, c.err, c.row)
		}
	}
}

// takers are n callers that take one.
func takers(n int) []*caller {
	all := make([]*caller, n)
	for i := range all {
		all[i] = &caller{change: take}
	}
	return all
}

// wantShared checks that callers shared one transaction: each has the version and the
// remainder after its own change, from those of the first one on.
func (e *env) wantShared(left int, version dbguard.Version, callers ...*caller) {
	e.t.Helper()
	for i, c := range callers {
		want := Stock{ID: 1, Left: left - i, Version: version + dbguard.Version(i)}
		if c.err != nil || c.row != want {
			e.t.Errorf("caller %d got %+v and %v, want %+v", i, c.row, c.err, want)
		}
	}
}

// TestCombine: each caller gets the row as its own change left it, and the row has all
// changes.
func TestCombine(t *testing.T) {
	each(t, func(e *env) {
		e.create(&Stock{ID: 1, Left: 60})
		callers := takers(64)
		e.crew(callers...)
		e.wantShared(59, 2, callers[:60]...)
		for _, c := range callers[60:] {
			wantIs(e.t, c.err, errSoldOut)
		}
		if s := e.stock(1); s.Left != 0 || s.Version != 61 {
			e.t.Errorf("the stock is %+v", s)
		}
		e.wantNoEvent()
		e.wantFree("sku:1")
	})
}

// TestCombinePanics: a caller whose change panics or ends its goroutine takes nobody
// along, be it the first, one in the middle, or the last.
func TestCombinePanics(t *testing.T) {
	each(t, func(e *env) {
		for name, die := range map[string]func(){"panic": func() { panic("boom") }, "goexit": runtime.Goexit} {
			for _, at := range []int{0, 3, 7} {
				e.onSameDatabase(fmt.Sprintf("%s of %d", name, at), func(e *env) {
					e.create(&Stock{ID: 1, Left: 100})
					callers := takers(8)
					callers[at].change = func(s *Stock) error {
						s.Left = -1
						die()
						return nil
					}
					e.crew(callers...)
					if callers[at].err == nil {
						e.t.Error("the caller that died got an answer")
					}
					if s := e.stock(1); s.Left != 93 || s.Version != 8 {
						e.t.Errorf("the stock is %+v", s)
					}
					e.wantNoEvent()
					e.wantFree("sku:1")
				})
			}
		}
	})
}

// TestCombineLostLock: one event for all callers of the transaction, which all are told.
func TestCombineLostLock(t *testing.T) {
	eachServer(t, func(e *env) {
		e.create(&Stock{ID: 1, Left: 100})
		callers := takers(8)
		callers[0].change = func(s *Stock) error {
			e.loseTo("sku:1", guard.Update(&Stock{ID: 1}, take).Run)
			return take(s)
		}
		e.crew(callers...)
		refused := 0
		for _, c := range callers {
			if c.err != nil {
				wantIs(e.t, c.err, guard.ErrIntercepted)
				refused++
			}
		}
		ev := e.wantEvent(notify.VerdictOverlap, notify.OutcomeRefused, "sku:1")
		if ev.Count != refused {
			e.t.Errorf("the event counts %d, and %d were refused", ev.Count, refused)
		}
		if s := e.stock(1); s.Left != 100-1-(8-refused) {
			e.t.Errorf("%d refused, the stock is %+v", refused, s)
		}
	})
}

// TestCombineLostAtTheRelease: all have their answer, and one event counts them.
func TestCombineLostAtTheRelease(t *testing.T) {
	each(t, func(e *env) {
		e.create(&Stock{ID: 1, Left: 100})
		callers := takers(4)
		callers[2].change = func(s *Stock) error {
			e.Forget("sku:1")
			return take(s)
		}
		e.crew(callers...)
		e.wantShared(99, 2, callers...)
		if ev := e.wantEvent(notify.VerdictLost, notify.OutcomeCommitted, "sku:1"); ev.Count != 4 {
			e.t.Errorf("the event counts %d, want 4", ev.Count)
		}
	})
}

// TestCombineLeavesASlowCallerBehind: the others have their answers before its change has
// ended. It runs alone then.
func TestCombineLeavesASlowCallerBehind(t *testing.T) {
	each(t, func(e *env) {
		e.create(&Stock{ID: 1, Left: 100})
		callers := takers(6)
		callers[3].change = func(s *Stock) error {
			testwait.Until(e.t, "the others are done", func() bool { return e.stock(1).Left < 100 })
			return take(s)
		}
		e.crewWithin(callers...)
		e.wantShared(99, 2, callers[:3]...)
		for _, c := range callers[3:] {
			wantNil(e.t, c.err)
		}
		if s := e.stock(1); s.Left != 94 || s.Version != 7 {
			e.t.Errorf("the stock is %+v", s)
		}
	})
}

// TestCombineSlowKey: where each change takes too long, there are as many transactions and
// changes as without Combine.
func TestCombineSlowKey(t *testing.T) {
	e := onSQLite(t)
	e.create(&Stock{ID: 1, Left: 100})
	e.inside().TurnLimit(time.Millisecond)
	changes := 0
	callers := takers(4)
	for _, c := range callers {
		c.change = func(s *Stock) error {
			if changes++; changes < len(callers) {
				testwait.Until(e.t, "the others are given back", func() bool { return e.inside().Lines() == 1 })
			}
			return take(s)
		}
	}
	e.crewWithin(callers...)
	e.wantShared(99, 2, callers...)
	if n := e.transactions(); n != len(callers)+1 || changes != len(callers) { // one that they queued behind
		t.Errorf("%d callers had %d transactions, and made %d changes", len(callers), n-1, changes)
	}
}

// TestCombineEndedContext: a caller that no longer waits when its turn comes has no part.
func TestCombineEndedContext(t *testing.T) {
	each(t, func(e *env) {
		e.create(&Stock{ID: 1, Left: 100})
		ctx, cancel := context.WithCancelCause(bg)
		callers := takers(5)
		callers[3].ctx = ctx
		callers[1].change = func(s *Stock) error {
			cancel(errors.New("own cause"))
			return take(s)
		}
		e.crew(callers...)
		wantIs(e.t, callers[3].err, context.Canceled)
		e.wantShared(99, 2, callers[0], callers[1], callers[2], callers[4])
	})
}

// TestCombineRunsAgain: a deadlock costs nobody anything, and the row of nobody is
// changed twice.
func TestCombineRunsAgain(t *testing.T) {
	each(t, func(e *env) {
		e.prepareDeadlocks()
		e.create(&Stock{ID: 1, Left: 100})
		callers := takers(5)
		e.deadlocks(2)
		e.crew(callers...)
		e.wantShared(99, 2, callers...)
		e.deadlocks(4)
		callers = takers(3)
		e.crew(callers...)
		for _, c := range callers {
			wantIs(e.t, c.err, errDeadlock)
		}
		e.deadlocks(0)
		e.wantNoEvent()
		e.wantFree("sku:1")
	})
}

// TestCombineRefusedValue: what the database refuses is the error of the one who wrote
// it, and of nobody else.
func TestCombineRefusedValue(t *testing.T) {
	eachServer(t, func(e *env) {
		left := e.db.Statement.Quote("left")
		wantNil(e.t, e.db.Exec("ALTER TABLE stocks ADD CONSTRAINT enough CHECK ("+left+" > 0)").Error)
		if e.db.Create(&Stock{ID: 2, Left: -1}).Error == nil { // a MySQL before 8.0.16 ignores CHECK
			wantNil(e.t, e.db.Delete(&Stock{ID: 2}).Error)
			wantNil(e.t, e.db.Exec("ALTER TABLE stocks MODIFY "+left+" INT UNSIGNED NOT NULL").Error)
		}
		e.create(&Stock{ID: 1, Left: 100})
		callers := takers(6)
		callers[2].change = func(s *Stock) error {
			s.Left -= 1000
			return nil
		}
		e.crew(callers...)
		for i, c := range callers {
			if (c.err == nil) == (i == 2) {
				e.t.Errorf("caller %d got %v", i, c.err)
			}
		}
		if s := e.stock(1); s.Left != 95 || s.Version != 6 {
			e.t.Errorf("the stock is %+v", s)
		}
		e.wantNoEvent()
	})
}

// TestCombineForeignLock: while somebody else has locked the row, a caller who does not
// wait any longer gets its answer, and the others wait on.
func TestCombineForeignLock(t *testing.T) {
	eachServer(t, func(e *env) {
		e.create(&Stock{ID: 1, Left: 100})
		tx := e.open().Begin()
		wantNil(e.t, tx.Exec("UPDATE stocks SET id = id WHERE id = 1").Error)
		ctx, cancel := context.WithCancel(bg)
		callers := takers(5)
		callers[2].ctx = ctx
		callers[4].change = func(s *Stock) error {
			cancel()
			return take(s)
		}
		var all sync.WaitGroup
		all.Go(func() { e.crew(callers...) })
		testwait.Until(e.t, "the impatient caller has its answer", callers[2].answered.Load)
		wantNil(e.t, tx.Rollback().Error)
		all.Wait()
		wantIs(e.t, callers[2].err, context.Canceled)
		e.wantShared(99, 2, callers[0], callers[1], callers[3], callers[4])
		e.wantNoEvent()
	})
}

// TestCombineAwaitsTheCommit: nobody has an answer before the COMMIT has one, and if that
// is lost, all are told what is proven.
func TestCombineAwaitsTheCommit(t *testing.T) {
	e, k := linked(t)
	e.create(&Stock{ID: 1, Left: 100})
	type held struct {
		reached <-chan struct{}
		pass    func()
	}
	commit := make(chan held, 1)
	callers := takers(3)
	callers[0].change = func(s *Stock) error {
		reached, pass := k.Hold()
		commit <- held{reached, pass}
		return take(s)
	}
	var all sync.WaitGroup
	all.Go(func() { e.crew(callers...) })
	h := <-commit
	<-h.reached
	for i, c := range callers {
		if c.answered.Load() {
			t.Errorf("caller %d has an answer before the COMMIT has one", i)
		}
	}
	h.pass()
	all.Wait()
	e.wantShared(99, 2, callers...)

	callers = takers(3)
	callers[1].change = func(*Stock) error { return errSoldOut } // which may not be true
	callers[2].change = func(s *Stock) error {
		k.After.Store(true)
		return take(s)
	}
	e.crew(callers...)
	k.After.Store(false)
	for _, c := range callers {
		wantIs(t, c.err, guard.ErrUnknown)
	}
	if ev := e.wantEvent(notify.VerdictUnknownCommit, notify.OutcomeUnknown, "sku:1"); ev.Count != 3 {
		t.Errorf("the event counts %d, want 3", ev.Count)
	}
}

// TestCombineMisuse: what can't be combined runs alone, or says so.
func TestCombineMisuse(t *testing.T) {
	each(t, func(e *env) {
		e.create(&Stock{ID: 1, Left: 9})
		if err := e.Do(bg, "k", nop, guard.Combine()); err == nil {
			e.t.Error("Do with Combine returns nil")
		}
		combine, wait := guard.Combine(), guard.Wait(time.Second)
		wantNil(e.t, e.Apply(bg, "sku:1", guard.Update(&Stock{ID: 1}, take), combine))
		wantNil(e.t, e.Apply(bg, "sku:1", guard.Update(&Stock{ID: 1}, take), combine, wait, guard.Remember(time.Millisecond)))
		wantNil(e.t, e.Apply(bg, "sku:1", guard.Update(&Stock{ID: 1}, take), combine, wait, guard.Also("other")))
		wantNil(e.t, e.Apply(bg, "order:1", guard.Insert(&Order{No: "1"}), combine, wait))
		wantIs(e.t, e.Apply(bg, "sku:2", guard.Update(&Stock{ID: 2}, take), combine, wait), gorm.ErrRecordNotFound)
		wantIs(e.t, e.Apply(bg, "sku:1", guard.Update(&Stock{ID: 1, Version: 1}, take), combine, wait), guard.ErrStale)
		wantNil(e.t, e.Do(bg, "sku:1", func(ctx context.Context, _ *gorm.DB) error {
			return e.Apply(ctx, "sku:1", guard.Update(&Stock{ID: 1}, take), combine, wait)
		}))
		wantNil(e.t, e.Do(bg, "sku:1", func(ctx context.Context, _ *gorm.DB) error {
			wantIs(e.t, e.Apply(ctx, "sku:2", guard.Update(&Stock{ID: 1}, take), combine, wait), guard.ErrNested)
			return nil
		}))
		wantNil(e.t, e.Apply(bg, "sku:1", guard.Change{}, combine, wait))
		again := &Order{No: "2"}
		for name, change := range map[string]guard.Change{
			"a nil row":              guard.Update[Stock](nil, take),
			"a nil change":           guard.Update(&Stock{ID: 1}, nil),
			"no primary key":         guard.Update(&Stock{}, take),
			"a nil row to insert":    guard.Insert[Order](nil),
			"one of two rows is nil": guard.All(guard.Insert(&Order{No: "3"}), guard.Update[Stock](nil, take)),
			"no struct":              guard.Insert(new(int)),
			"a row that has no name": guard.Insert(&Order{Amount: 1}),
			"a row twice":            guard.All(guard.Insert(again), guard.Insert(again)),
		} {
			if err := e.Apply(bg, "sku:1", change, combine, wait); err == nil {
				e.t.Errorf("%s: no error", name)
			}
		}
		if n := e.count(&Order{}); n != 1 {
			e.t.Errorf("%d orders, want 1", n)
		}
		wantNil(e.t, e.Apply(bg, "sku:1", guard.All(guard.Update(&Stock{ID: 1}, take), guard.Update(&Stock{ID: 1}, take)), combine, wait))
		e.wantNoEvent()
	})
}

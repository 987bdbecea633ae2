package promises_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"gorm.io/gorm"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/internal/dbtx"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/notify"
)

// wantConflict checks that err is a conflict that says nothing about the lock.
func (e *env) wantConflict(err error) {
	e.t.Helper()
	var c *dbguard.ConflictError
	if !errors.As(err, &c) || errors.Is(err, guard.ErrDuplicate) || errors.Is(err, guard.ErrStale) || errors.Is(err, guard.ErrIntercepted) {
		e.t.Fatalf("error is %v, want a bare conflict", err)
	}
}

func insertAll(nos ...string) (guard.Op, guard.Option) {
	rows := make([]Order, len(nos))
	protect := make([]any, len(nos))
	for i, no := range nos {
		rows[i].No = no
		protect[i] = Order{No: no}
	}
	return func(_ context.Context, tx *gorm.DB) error { return tx.Create(&rows).Error }, guard.Protects(protect...)
}

func TestBatchWithADuplicate(t *testing.T) {
	each(t, func(e *env) {
		e.create(&Order{No: "b"})
		op, protect := insertAll("a", "b", "c")
		wantIs(e.t, e.Do(bg, "batch", op, protect), guard.ErrDuplicate)
		if n := e.count(&Order{}); n != 1 {
			e.t.Errorf("%d rows, want the old one only", n)
		}
		e.wantNoEvent()
	})
	each(t, func(e *env) { // nor is a duplicate that the key does not protect taken for one that it does
		e.create(&Order{No: "z"})
		rows := []Order{{No: "a"}, {No: "z"}}
		e.wantConflict(e.Do(bg, "order:a", func(_ context.Context, tx *gorm.DB) error { return tx.Create(&rows).Error }, guard.Protects(&Order{No: "a"})))
		e.wantNoEvent()
	})
	eachServer(t, func(e *env) { // a repeat in the batch does not hide an overlap
		e.create(&Order{No: "a"})
		op, protect := insertAll("c", "b", "a")
		err := e.Do(bg, "batch", func(ctx context.Context, tx *gorm.DB) error {
			e.loseTo("batch", guard.Insert(&Order{No: "b"}).Run)
			return op(ctx, tx)
		}, protect)
		wantIs(e.t, err, guard.ErrIntercepted)
		e.wantEvent(notify.VerdictOverlap, notify.OutcomeRefused, "batch")
	})
}

// wantChanged wants the error of an update of a row that changed since the snapshot:
// a bare conflict, or what a MariaDB with innodb_snapshot_isolation says.
func (e *env) wantChanged(err error) {
	e.t.Helper()
	if _, judged := errors.AsType[*dbguard.ConflictError](err); judged || !dbtx.Retryable(err) || !testdb.SnapshotIsolation(e.t, e.db) {
		e.wantConflict(err)
	}
}

// TestSharedRow: a stock row that many orders sell from is not protected by any
// of their keys, and a conflict on it accuses no lock.
func TestSharedRow(t *testing.T) {
	eachServer(t, func(e *env) {
		e.create(&Stock{ID: 7, Left: 9})
		sell := func(no string, between func()) error {
			return e.Do(bg, "order:"+no, func(_ context.Context, tx *gorm.DB) error {
				if err := tx.Create(&Order{No: no}).Error; err != nil {
					return err
				}
				var s Stock
				if err := tx.Take(&s, 7).Error; err != nil {
					return err
				}
				between()
				s.Left--
				return tx.Updates(&s).Error
			}, guard.Protects(&Order{No: no}))
		}
		e.wantChanged(sell("a", func() { wantNil(e.t, sell("b", func() {})) }))
		if s := e.stock(7); s.Left != 8 || e.count(&Order{}) != 1 {
			e.t.Errorf("left %d after %d orders", s.Left, e.count(&Order{}))
		}
		e.wantNoEvent()
	})
}

// TestConditionBesideTheVersion: when the version is as expected, another
// condition has failed: neither a repeat nor a lock failure, and never nil.
func TestConditionBesideTheVersion(t *testing.T) {
	each(t, func(e *env) {
		e.create(&Stock{ID: 1, Left: 0})
		left := e.db.Statement.Quote("left")
		e.wantConflict(e.Do(bg, "sku:1", func(_ context.Context, tx *gorm.DB) error {
			return tx.Model(&Stock{ID: 1, Version: 1}).Where(left+" > 0").Update("left", gorm.Expr(left+" - 1")).Error
		}, guard.Protects(&Stock{ID: 1})))
		wantIs(e.t, e.Do(bg, "sku:1", func(_ context.Context, tx *gorm.DB) error {
			return tx.Model(&Stock{ID: 1, Version: 7}).Where(left+" > 0").Update("left", gorm.Expr(left+" - 1")).Error
		}, guard.Protects(&Stock{ID: 1})), guard.ErrStale)
		e.wantNoEvent()
	})
}

// TestLostAtABusinessConflict: the question who has the key finds the lock gone, and the
// release, which would have told it, too, is not answered.
func TestLostAtABusinessConflict(t *testing.T) {
	each(t, func(e *env) {
		e.create(&Stock{ID: 1, Left: 0})
		left := e.db.Statement.Quote("left")
		locker, err := lock.New(&deaf{Engine: e.Engine()}, lock.Config{})
		wantNil(e.t, err)
		g, err := guard.New(e.db, locker, guard.Config{Service: "deaf", Publisher: &e.Events})
		wantNil(e.t, err)
		e.wantConflict(g.Do(bg, "sku:1", func(_ context.Context, tx *gorm.DB) error {
			e.Forget("sku:1")
			return tx.Model(&Stock{ID: 1, Version: 1}).Where(left+" > 0").Update("left", gorm.Expr(left+" - 1")).Error
		}, guard.Protects(&Stock{ID: 1})))
		if ev := e.wantEvent(notify.VerdictLost, notify.OutcomeRefused, "sku:1"); ev.Loss != notify.LossGone {
			e.t.Errorf("loss is %q, want gone", ev.Loss)
		}
		wantNil(e.t, errors.Join(g.Close(bg), locker.Close(bg)))
	})
}

// deaf does not answer the first release.
type deaf struct {
	lockengine.Engine
	releases atomic.Int64
}

func (d *deaf) Release(ctx context.Context, r lockengine.Request) error {
	if d.releases.Add(1) == 1 {
		return lockengine.ErrNoAnswer
	}
	return d.Engine.Release(ctx, r)
}

// TestDeletedByTheOther: an update of a row that the next holder has deleted.
func TestDeletedByTheOther(t *testing.T) {
	eachServer(t, func(e *env) {
		e.create(&Stock{ID: 1, Left: 9})
		wantIs(e.t, e.Apply(bg, "sku:1", guard.Update(&Stock{ID: 1}, func(s *Stock) error {
			e.loseTo("sku:1", func(_ context.Context, tx *gorm.DB) error { return tx.Delete(&Stock{}, 1).Error })
			return take(s)
		})), guard.ErrIntercepted)
		e.wantEvent(notify.VerdictOverlap, notify.OutcomeRefused, "sku:1")
		if n := e.count(&Stock{}); n != 0 {
			e.t.Errorf("%d rows, want none", n)
		}
	})
}

// TestRepeatOfAnUpdatedRow: what has become of the row since does not matter.
func TestRepeatOfAnUpdatedRow(t *testing.T) {
	each(t, func(e *env) {
		wantNil(e.t, e.Apply(bg, "order:a", guard.Insert(&Order{No: "a", Amount: 1})))
		wantNil(e.t, e.db.Model(&Order{}).Where("no = ?", "a").Update("amount", 2).Error)
		wantIs(e.t, e.Apply(bg, "order:a", guard.Insert(&Order{No: "a", Amount: 1})), guard.ErrDuplicate)
		e.wantNoEvent()
	})
	eachServer(t, func(e *env) { // and while it runs
		e.create(&Order{No: "a", Amount: 1})
		wantIs(e.t, e.Do(bg, "order:a", func(ctx context.Context, tx *gorm.DB) error {
			wantNil(e.t, e.db.Model(&Order{}).Where("no = ?", "a").Update("amount", 2).Error)
			return guard.Insert(&Order{No: "a", Amount: 1}).Run(ctx, tx)
		}), guard.ErrDuplicate)
		e.wantNoEvent()
	})
}

// TestTwoRowsUnderOneKey: an operation on rows of two kinds is judged by each,
// and what it only touches is not.
func TestTwoRowsUnderOneKey(t *testing.T) {
	eachServer(t, func(e *env) {
		e.create(&Stock{ID: 1, Left: 9}, &Order{No: "b"})
		run := func(no string, between func()) error {
			return e.Do(bg, "sku:1", func(ctx context.Context, tx *gorm.DB) error {
				if err := tx.Create(&Order{No: no}).Error; err != nil {
					return err
				}
				return guard.Update(&Stock{ID: 1}, func(s *Stock) error { between(); return take(s) }).Run(ctx, tx)
			}, guard.Protects(&Order{No: "a"}, &Stock{ID: 1}))
		}
		e.wantConflict(run("b", func() {})) // the key does not protect this order
		wantNil(e.t, run("a", func() {}))
		wantIs(e.t, run("a", func() {}), guard.ErrDuplicate)
		e.wantNoEvent()
		wantIs(e.t, run("c", func() { e.loseTo("sku:1", guard.Update(&Stock{ID: 1}, take).Run) }), guard.ErrIntercepted)
		e.wantEvent(notify.VerdictOverlap, notify.OutcomeRefused, "sku:1")
	})
}

// TestOuterContext: a statement with the outer context is the transaction's all
// the same; one on the outer db with the operation's context is refused.
func TestOuterContext(t *testing.T) {
	each(t, func(e *env) {
		wantIs(e.t, e.Do(bg, "k", func(_ context.Context, tx *gorm.DB) error {
			wantNil(e.t, tx.WithContext(bg).Create(&Order{No: "a"}).Error)
			return errSoldOut
		}), errSoldOut)
		wantIs(e.t, e.shortGuard().Do(bg, "k", func(ctx context.Context, tx *gorm.DB) error {
			e.Forget("k")
			<-ctx.Done()
			err := tx.WithContext(bg).Create(&Order{No: "b"}).Error
			wantIs(e.t, err, guard.ErrLost)
			return err
		}), guard.ErrLost)
		wantIs(e.t, e.Do(bg, "k", func(ctx context.Context, tx *gorm.DB) error {
			return tx.Session(&gorm.Session{PrepareStmt: true}).Create(&Order{No: "c"}).Error
		}), dbguard.ErrOutside)
		wantIs(e.t, e.Do(bg, "k", func(ctx context.Context, _ *gorm.DB) error {
			return e.db.WithContext(ctx).Create(&Order{No: "d"}).Error
		}), dbguard.ErrOutside)
		if n := e.count(&Order{}); n != 0 {
			e.t.Errorf("%d rows, want none", n)
		}
	})
}

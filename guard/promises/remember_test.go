package promises_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/lock/lockengine"
)

func TestRemember(t *testing.T) {
	each(t, func(e *env) {
		const key = "order:a"
		remember := guard.Remember(time.Minute)
		runs := 0
		insert := func(no string) guard.Op {
			return func(ctx context.Context, tx *gorm.DB) error {
				runs++
				return guard.Insert(&Order{No: no}).Run(ctx, tx)
			}
		}
		wantIs(e.t, e.Do(bg, key, func(context.Context, *gorm.DB) error { return errSoldOut }, remember), errSoldOut)
		wantNil(e.t, e.Do(bg, key, insert("a"), remember)) // a failure is not remembered
		err := e.Do(bg, key, insert("a"), remember)
		wantIs(e.t, err, guard.ErrDuplicate)
		wantIs(e.t, err, lockengine.ErrMarked)
		wantIs(e.t, e.Peer(e.t, e.db).Do(bg, key, insert("a"), remember, guard.Wait(time.Minute)), guard.ErrDuplicate)
		if runs != 1 {
			e.t.Errorf("the operation ran %d times, want once", runs)
		}
		err = e.Do(bg, key, insert("a")) // who does not ask goes to the database
		wantIs(e.t, err, guard.ErrDuplicate)
		if runs != 2 || errors.Is(err, lockengine.ErrMarked) {
			e.t.Errorf("the operation ran %d times, error is %v", runs, err)
		}

		e.create(&Order{No: "b"}) // a repeat is remembered, too
		for range 3 {
			wantIs(e.t, e.Do(bg, "order:b", insert("b"), remember), guard.ErrDuplicate)
		}
		if runs != 3 {
			e.t.Errorf("the operation ran %d times, want 3", runs)
		}
		e.create(&Stock{ID: 1, Left: 9, Version: 2}) // an old version is not
		for range 2 {
			wantIs(e.t, e.Do(bg, "sku:1", func(ctx context.Context, tx *gorm.DB) error {
				runs++
				return guard.Update(&Stock{ID: 1, Version: 1}, take).Run(ctx, tx)
			}, remember), guard.ErrStale)
		}
		if runs != 5 {
			e.t.Errorf("the operation ran %d times, want 5", runs)
		}
		e.wantNoEvent()
	})
}

// TestRememberSwallowed: what an operation makes of a repeat decides: if it fails
// for another reason, the request is not done.
func TestRememberSwallowed(t *testing.T) {
	each(t, func(e *env) {
		e.create(&Order{No: "a"})
		remember := guard.Remember(time.Minute)
		soldOut := true
		op := func(_ context.Context, tx *gorm.DB) error {
			wantIs(e.t, tryCreate(tx, &Order{No: "a"}), gorm.ErrDuplicatedKey)
			if soldOut {
				return errSoldOut
			}
			return nil
		}
		wantIs(e.t, e.Do(bg, "k", op, remember, guard.Protects(&Order{No: "a"})), errSoldOut)
		soldOut = false
		wantNil(e.t, e.Do(bg, "k", op, remember, guard.Protects(&Order{No: "a"})))
		wantIs(e.t, e.Do(bg, "k", op, remember, guard.Protects(&Order{No: "a"})), guard.ErrDuplicate)
	})
}

// TestRememberNoFailure: a repeat beside a lock failure is not remembered.
func TestRememberNoFailure(t *testing.T) {
	mysqlOnly(t, func(e *env) {
		e.create(&Order{No: "a"}, &Stock{ID: 1, Left: 9})
		remember, protect := guard.Remember(time.Minute), guard.Protects(&Order{No: "a"}, &Stock{ID: 1})
		wantIs(e.t, e.Do(bg, "k", func(ctx context.Context, tx *gorm.DB) error {
			s := e.stockIn(tx, 1)
			repeat := tx.Create(&Order{No: "a"}).Error
			e.loseTo("k", guard.Update(&Stock{ID: 1}, take).Run)
			if err := tx.Model(&s).Update("left", 1).Error; err == nil {
				e.t.Error("an overlap was not refused")
			}
			return repeat
		}, remember, protect), guard.ErrIntercepted)
		wantNil(e.t, e.Do(bg, "k", func(context.Context, *gorm.DB) error { return nil }, remember))
	})
}

// TestRememberUnread: a repeat whose row could not be read is not remembered.
func TestRememberUnread(t *testing.T) {
	each(t, func(e *env) {
		if e.db.Name() == "postgres" || testdb.SnapshotIsolation(e.t, e.db) {
			return // it reads before
		}
		e.create(&Order{No: "a"})
		unreadable := true
		wantNil(e.t, e.db.Callback().Query().Before("gorm:query").Register("test:unreadable", func(db *gorm.DB) {
			if unreadable {
				_ = db.AddError(errBroken)
			}
		}))
		for range 2 {
			err := e.Apply(bg, "order:a", guard.Insert(&Order{No: "a"}), guard.Remember(time.Minute))
			wantIs(e.t, err, guard.ErrDuplicate)
			if errors.Is(err, lockengine.ErrMarked) {
				e.t.Errorf("error is %v: what nobody has seen is remembered", err)
			}
			unreadable = false
		}
		e.wantNoEvent()
	})
}

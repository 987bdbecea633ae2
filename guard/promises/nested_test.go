package promises_test

import (
	"context"
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/internal/dbtx"
	"github.com/belaygo/belay/notify"
)

// TestNestedDo: with the same key, a Do inside an operation is a savepoint in
// its transaction.
func TestNestedDo(t *testing.T) {
	for name, cfg := range map[string]*gorm.Config{"plain": {}, "no nested transactions": {DisableNestedTransaction: true}} {
		t.Run(name, func(t *testing.T) {
			each(t, func(e *env) {
				const key = "orders"
				lost := &Order{No: "lost"}
				wantNil(e.t, e.Do(bg, key, func(ctx context.Context, tx *gorm.DB) error {
					wantNil(e.t, guard.Insert(&Order{No: "outer"}).Run(ctx, tx))
					wantNil(e.t, e.Apply(ctx, key, guard.Insert(&Order{No: "inner"})))
					wantIs(e.t, e.Do(ctx, key, func(ctx context.Context, tx *gorm.DB) error {
						wantNil(e.t, guard.Insert(lost).Run(ctx, tx))
						return errSoldOut
					}), errSoldOut)
					if err := e.Do(ctx, key, nil); err == nil {
						e.t.Error("Do without an operation returns nil")
					}
					return nil
				}))
				if n := e.count(&Order{}); n != 2 {
					e.t.Errorf("%d rows, want the outer and the inner one", n)
				}

				wantIs(e.t, e.Do(bg, key, func(ctx context.Context, tx *gorm.DB) error {
					wantNil(e.t, e.Apply(ctx, key, guard.Insert(&Order{No: "undone"})))
					return errSoldOut
				}), errSoldOut)
				if n := e.count(&Order{}); n != 2 {
					e.t.Errorf("%d rows after the outer rollback, want 2", n)
				}
				e.wantNoEvent()
			}, cfg)
		})
	}
}

// TestNestedRepeat: the outer Do judges what happened inside.
func TestNestedRepeat(t *testing.T) {
	each(t, func(e *env) {
		e.create(&Order{No: "a"})
		wantIs(e.t, e.Do(bg, "k", func(ctx context.Context, _ *gorm.DB) error {
			return e.Apply(ctx, "k", guard.Insert(&Order{No: "a"}))
		}), guard.ErrDuplicate)
		wantNil(e.t, e.Do(bg, "k", func(ctx context.Context, tx *gorm.DB) error {
			err := e.Do(ctx, "k", func(_ context.Context, tx *gorm.DB) error {
				return tx.Create(&Order{No: "a"}).Error
			}, guard.Protects(&Order{No: "a"}))
			wantIs(e.t, err, gorm.ErrDuplicatedKey)
			return tx.Create(&Order{No: "instead"}).Error
		}))
		if n := e.count(&Order{}); n != 2 {
			e.t.Errorf("%d rows, want 2", n)
		}
		e.wantNoEvent()
	})
	eachServer(t, func(e *env) {
		wantIs(e.t, e.Do(bg, "k", func(ctx context.Context, _ *gorm.DB) error {
			e.loseTo("k", guard.Insert(&Order{No: "a"}).Run)
			_ = e.Apply(ctx, "k", guard.Insert(&Order{No: "a"}))
			return nil
		}, guard.Protects(&Order{No: "a"})), guard.ErrIntercepted)
		e.wantEvent(notify.VerdictOverlap, notify.OutcomeRefused, "k")
	})
}

func TestNestedMisuse(t *testing.T) {
	each(t, func(e *env) {
		nop := func(context.Context, *gorm.DB) error { return nil }
		peer := e.Peer(e.t, e.db)
		var escaped context.Context
		wantNil(e.t, e.Do(bg, "k", func(ctx context.Context, _ *gorm.DB) error {
			escaped = ctx //nolint:fatcontext // it is to be used when it is too late
			err := e.Do(ctx, "other", nop)
			wantIs(e.t, err, guard.ErrNested)
			if !strings.Contains(err.Error(), `"other"`) || !strings.Contains(err.Error(), `"k"`) {
				e.t.Errorf("error names no keys: %v", err)
			}
			wantIs(e.t, peer.Do(ctx, "k", nop), guard.ErrNested)
			return nil
		}))
		if err := e.Apply(escaped, "k", guard.Insert(&Order{No: "late"})); err == nil {
			e.t.Error("an operation ran in a transaction that has ended")
		}

		tx, err := dbtx.Begin(bg, e.db, dbtx.Options{})
		wantNil(e.t, err)
		defer tx.Rollback()
		wantIs(e.t, e.Do(tx.Context(), "k", nop), guard.ErrNested)
		e.wantNoEvent()
	})
}

func TestNestedPanic(t *testing.T) {
	each(t, func(e *env) {
		wantNil(e.t, e.Do(bg, "k", func(ctx context.Context, tx *gorm.DB) error {
			func() {
				defer func() { _ = recover() }()
				_ = e.Do(ctx, "k", func(_ context.Context, tx *gorm.DB) error {
					wantNil(e.t, tx.Create(&Order{No: "inner"}).Error)
					panic("boom")
				})
			}()
			return tx.Create(&Order{No: "outer"}).Error
		}))
		var o Order
		wantNil(e.t, e.db.Take(&o).Error)
		if n := e.count(&Order{}); n != 1 || o.No != "outer" {
			e.t.Errorf("%d rows, the first is %q, want the outer one only", n, o.No)
		}
	})
}

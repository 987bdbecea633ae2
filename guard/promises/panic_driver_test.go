package promises_test

import (
	"context"
	"database/sql/driver"
	"testing"

	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/guard/guardtest"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/notify"
)

// touchyValue is a driver.Valuer that panics.
type touchyValue struct{}

func (touchyValue) Value() (driver.Value, error) { panic("driver") }

// TestDriverPanics: a driver, or a value of the program, that panics in a statement holds up
// nobody: the transaction is rolled back, and the key is free.
func TestDriverPanics(t *testing.T) {
	for _, tt := range []struct {
		name, at string
		op       guard.Op
	}{
		{"begin", "BEGIN", nop},
		{"query", "SELECT * FROM `stocks`", nop},
		{"row", "SELECT 7", nop},
		{"exec", "UPDATE", nop},
		{"rollback", "ROLLBACK", func(context.Context, *gorm.DB) error { return guard.ErrBusy }},
		{"value in a query", "never", func(_ context.Context, tx *gorm.DB) error {
			return tx.Where("id = ?", touchyValue{}).Find(&[]Stock{}).Error
		}},
		{"value in an exec", "never", func(_ context.Context, tx *gorm.DB) error {
			return tx.Exec("UPDATE stocks SET id = ?", touchyValue{}).Error
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			db, d := openTouchy(t, tt.at, 3)
			e := &env{Guard: guardtest.New(t, db), t: t, db: db}
			e.create(&Stock{ID: 1, Left: 9})
			d.armed.Store(true)
			recovered := make(chan any, 1)
			go func() {
				defer func() { recovered <- recover() }()
				_ = e.Do(bg, "k", func(ctx context.Context, tx *gorm.DB) error {
					if err := tx.Create(&Stock{ID: 2}).Error; err != nil {
						return err
					}
					if err := tt.op(ctx, tx); err != nil {
						return err
					}
					if err := tx.Exec("UPDATE stocks SET id = 3 WHERE id = 2").Error; err != nil {
						return err
					}
					var seven int
					if err := tx.Raw("SELECT 7").Row().Scan(&seven); err != nil {
						return err
					}
					return tx.Find(&[]Stock{}).Error
				}, guard.Protects(&Stock{ID: 2}))
			}()
			testwait.Until(t, "the panic arrives", func() bool { return len(recovered) > 0 })
			if p := <-recovered; p != "driver" {
				t.Errorf("recovered %v", p)
			}
			if n := e.count(&Stock{}); n != 1 {
				t.Errorf("%d rows, want the one of before", n)
			}
			e.wantFree("k")
		})
	}
}

// TestDriverPanicIsRecovered: an operation that recovers such a panic does not commit.
func TestDriverPanicIsRecovered(t *testing.T) {
	db, _ := openTouchy(t, "never", 3)
	e := &env{Guard: guardtest.New(t, db), t: t, db: db}
	err := e.Do(bg, "k", func(_ context.Context, tx *gorm.DB) error {
		if err := tx.Create(&Stock{ID: 2}).Error; err != nil {
			return err
		}
		defer func() { _ = recover() }()
		return tx.Where("id = ?", touchyValue{}).Find(&[]Stock{}).Error
	}, guard.Protects(&Stock{ID: 2}))
	if err == nil || e.count(&Stock{}) != 0 {
		t.Errorf("error is %v, with %d rows", err, e.count(&Stock{}))
	}
	e.wantFree("k")
}

// TestDriverPanicsBehindTheCommit: a driver that panics while Do looks for what became of a COMMIT
// holds up nobody. As nobody knows the outcome, the key stays locked, and an event says so.
func TestDriverPanicsBehindTheCommit(t *testing.T) {
	db, d := openTouchy(t, "SELECT", 3)
	e := &env{Guard: guardtest.New(t, db), t: t, db: db}
	e.create(&Stock{ID: 1, Left: 9})
	d.deaf.Store(true)
	recovered := make(chan any, 1)
	go func() {
		defer func() { recovered <- recover() }()
		_ = e.Apply(bg, "sku:1", guard.Update(&Stock{ID: 1}, take))
	}()
	testwait.Until(t, "the panic arrives", func() bool { return len(recovered) > 0 })
	if p := <-recovered; p != "driver" {
		t.Errorf("recovered %v", p)
	}
	wantIs(t, e.Peer(t, db).Apply(bg, "sku:1", guard.Update(&Stock{ID: 1}, take)), guard.ErrBusy)
	e.wantEvent(notify.VerdictUnknownCommit, notify.OutcomeUnknown, "sku:1")
}

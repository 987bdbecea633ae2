package promises_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/belaygo/belay/dbguard"
)

// TestUpdateOfTwoRows: a versioned update that was to write one row and has written two is
// rolled back, in an operation and outside of one.
func TestUpdateOfTwoRows(t *testing.T) {
	eachPayments(t, func(e *env) {
		table := "payments"
		if e.db.Migrator().HasTable("receipts") {
			table = "receipts"
		}
		for _, day := range []string{"2026-01-01 00:00:00", "2026-03-01 00:00:00"} {
			if strings.Contains(e.t.Name(), "inherited") && day > "2026-02" {
				table = "payments_1"
			}
			if strings.Contains(e.t.Name(), "failed") {
				wantNil(e.t, e.db.Exec("DROP INDEX IF EXISTS broken").Error)
			}
			wantNil(e.t, e.db.Exec("INSERT INTO "+table+" (id, created_at, cents) VALUES ('1', ?, 5)", day).Error)
		}
		p := Payment{ID: "1", Version: 1}
		raise := func(_ context.Context, tx *gorm.DB) error {
			err := tx.Model(&p).Update("cents", 6).Error
			if errors.Is(err, dbguard.ErrUnprotectable) {
				return nil // the transaction can be rolled back only, whatever the operation makes of it
			}
			return errors.Join(errors.New("two rows were written"), err)
		}
		wantIs(e.t, e.Do(bg, "payment:1", raise), dbguard.ErrUnprotectable)
		wantIs(e.t, e.db.Model(&p).Update("cents", 6).Error, dbguard.ErrUnprotectable)
		wantIs(e.t, e.db.Delete(&p).Error, dbguard.ErrUnprotectable)
		var left int64
		wantNil(e.t, e.db.Model(&Payment{}).Where("cents = 5 AND version = 1").Count(&left).Error)
		if left != 2 || p.Version != 1 {
			e.t.Errorf("%d rows are as they were, and the version in memory is %d; want 2 and 1", left, p.Version)
		}
		e.wantNoEvent()
	})
}

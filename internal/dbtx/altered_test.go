package dbtx_test

import (
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/internal/dbtx"
)

// TestDroppedIndexIsNoticed: an index that is dropped while the process runs protects
// nothing any more after a minute, or as soon as a statement shows that a table was altered.
func TestDroppedIndexIsNoticed(t *testing.T) {
	each(t, func(t *testing.T, db *gorm.DB) {
		protect := func(late time.Duration) error {
			tx := begin(t, db, dbtx.Options{})
			defer tx.Rollback()
			tx.Late(late)
			return tx.ProtectNew(&Order{No: "1"})
		}
		drop := func() { wantNil(t, db.Migrator().DropIndex(&Order{}, "idx_orders_no")) }
		wantNil(t, protect(0))
		drop()
		wantNil(t, protect(0)) // the blind spot
		wantIs(t, protect(2*time.Minute), dbguard.ErrUnprotectable)

		wantNil(t, db.Migrator().CreateIndex(&Order{}, "No"))
		wantNil(t, protect(4*time.Minute))
		drop()
		tx := begin(t, db, dbtx.Options{})
		if err := tx.DB().Exec("SELECT surname FROM orders").Error; err == nil && db.Name() != "sqlite" {
			t.Error("no error for a column that is not there")
		}
		tx.Rollback()
		if db.Name() != "sqlite" { // its errors do not tell which they are
			wantIs(t, protect(0), dbguard.ErrUnprotectable)
		}
	})
}

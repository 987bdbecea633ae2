package dbtx_test

import (
	"testing"

	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/dbtx"
)

func TestVersionInMemoryIsUndone(t *testing.T) {
	each(t, func(t *testing.T, db *gorm.DB) {
		wantNil(t, db.Create(&Stock{ID: 1, Left: 5}).Error)
		s := stock(t, db, 1)
		tx := begin(t, db, dbtx.Options{})
		wantNil(t, tx.DB().Model(&s).Update("left", 4).Error)
		wantNil(t, tx.DB().Model(&s).Update("left", 3).Error)
		if s.Version != 3 {
			t.Errorf("version in memory is %d, want 3", s.Version)
		}
		tx.Rollback()
		if s.Version != 1 {
			t.Errorf("version in memory after a rollback is %d, want 1", s.Version)
		}
	})
}

package dbtx_test

import (
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/belaygo/belay/internal/dbtx"
)

// TestWhatWasNotReadProvesNothing: an old version that stands in the struct of a
// query, but was not read by it, is no evidence of another writer.
func TestWhatWasNotReadProvesNothing(t *testing.T) {
	for name, query := range map[string]func(tx *gorm.DB, s *Stock) error{
		"no row found":      func(tx *gorm.DB, s *Stock) error { return tx.Find(s, left(tx)+" > 100").Error },
		"other columns":     func(tx *gorm.DB, s *Stock) error { return tx.Select("left").Take(s, 1).Error },
		"an expression":     func(tx *gorm.DB, s *Stock) error { return tx.Select("? AS "+left(tx), "7").Take(s, 1).Error },
		"all but a version": func(tx *gorm.DB, s *Stock) error { return tx.Omit("version").Take(s, 1).Error },
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, db *gorm.DB) {
				wantNil(t, db.Create(&Stock{ID: 1, Left: 5, Version: 3}).Error)
				tx := begin(t, db, dbtx.Options{})
				wantNil(t, tx.Protect(&Stock{ID: 1}))
				old := &Stock{ID: 1, Version: 2}
				wantNil(t, query(tx.DB(), old))
				wantStale(t, tx.DB().Model(old).Update("left", 4).Error)
				if c := tx.Conflict(); !repeat(c) {
					t.Errorf("conflict is %+v with evidence %+v, want a stale version", c, evidence(c))
				}
				var s Stock
				wantNil(t, tx.DB().Take(&s, 1).Error)
			})
		})
	}
	for name, query := range map[string]func(tx *gorm.DB, s *Stock) error{
		"all columns":   func(tx *gorm.DB, s *Stock) error { return tx.Take(s, 1).Error },
		"a star":        func(tx *gorm.DB, s *Stock) error { return tx.Select("*").Take(s, 1).Error },
		"by name":       func(tx *gorm.DB, s *Stock) error { return tx.Select("id", "stocks.version").Take(s, 1).Error },
		"by field name": func(tx *gorm.DB, s *Stock) error { return tx.Select("ID", "Version").Take(s, 1).Error },
		"all but left":  func(tx *gorm.DB, s *Stock) error { return tx.Omit("left").Take(s, 1).Error },
	} {
		t.Run("read, "+name, func(t *testing.T) {
			eachServer(t, func(t *testing.T, db *gorm.DB) {
				wantNil(t, db.Create(&Stock{ID: 1, Left: 5, Version: 3}).Error)
				var memory dbtx.Memory
				first := begin(t, db, dbtx.Options{Memory: &memory})
				wantNil(t, first.Protect(&Stock{ID: 1}))
				wantNil(t, query(first.DB(), &Stock{ID: 1}))
				first.Rollback()
				wantNil(t, db.Exec("UPDATE stocks SET version = 4").Error)
				second := begin(t, db, dbtx.Options{Memory: &memory})
				if second.Protect(&Stock{ID: 1}) == nil { // where it is not read at once
					_ = second.DB().Take(&Stock{}, 1).Error
				}
				if c := second.Conflict(); db.Name() == "mysql" && !overlap(c) {
					t.Errorf("conflict is %+v, want an overlap", c)
				}
			})
		})
	}
}

// TestReadsItsOwnWrites: a row that this transaction has written itself since it
// read it accuses nobody.
func TestReadsItsOwnWrites(t *testing.T) {
	each(t, func(t *testing.T, db *gorm.DB) {
		for name, write := range map[string]func(*gorm.DB) error{
			"a versioned update": func(tx *gorm.DB) error { return tx.Model(&Stock{ID: 1, Version: 1}).Update("left", 4).Error },
			"a blind update":     func(tx *gorm.DB) error { return tx.Model(&Stock{}).Where("id = 1").Update("left", 4).Error },
			"an upsert": func(tx *gorm.DB) error {
				return tx.Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "id"}}, DoUpdates: clause.AssignmentColumns([]string{"left"})}).
					Create(&Stock{ID: 1, Left: 4}).Error
			},
			"raw SQL": func(tx *gorm.DB) error { return tx.Exec("UPDATE stocks SET version = 2 WHERE id = 1").Error },
		} {
			wantNil(t, db.Where("1 = 1").Delete(&Stock{}).Error)
			wantNil(t, db.Create(&Stock{ID: 1, Left: 5}).Error)
			tx := begin(t, db, dbtx.Options{})
			wantNil(t, tx.Protect(&Stock{ID: 1}))
			var s Stock
			wantNil(t, tx.DB().Take(&s, 1).Error)
			wantNil(t, write(tx.DB()))
			s = Stock{}
			wantNil(t, tx.DB().Take(&s, 1).Error)
			if c := tx.Conflict(); c != nil || s.Version != 2 {
				t.Errorf("%s: conflict is %+v with evidence %+v, version %d, want none and 2", name, c, evidence(c), s.Version)
			}
			wantNil(t, tx.Commit())
		}
	})
}

// TestInsertBehindADelete: an insert that succeeded does not prove that the row was
// missing before, if the transaction may have deleted it itself.
func TestInsertBehindADelete(t *testing.T) {
	eachServer(t, func(t *testing.T, db *gorm.DB) {
		wantNil(t, db.Create(&Stock{ID: 1, Left: 5, Version: 3}).Error)
		var memory dbtx.Memory
		first := begin(t, db, dbtx.Options{Memory: &memory})
		wantNil(t, first.Protect(&Stock{ID: 1}))
		wantNil(t, first.DB().Exec("DELETE FROM stocks WHERE id = 1").Error)
		wantNil(t, first.DB().Create(&Stock{ID: 1, Left: 4}).Error)
		first.Rollback()
		second := begin(t, db, dbtx.Options{Memory: &memory})
		wantNil(t, second.Protect(&Stock{ID: 1}))
		wantNil(t, second.DB().Take(&Stock{}, 1).Error)
		if c := second.Conflict(); c != nil {
			t.Errorf("conflict is %+v with evidence %+v", c, evidence(c))
		}
	})
}

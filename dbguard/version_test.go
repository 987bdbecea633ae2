package dbguard_test

import (
	"errors"
	"testing"

	"gorm.io/gorm"

	"github.com/belaygo/belay/dbguard"
)

func stock(t *testing.T, db *gorm.DB, id int64) Stock {
	t.Helper()
	var s Stock
	wantNil(t, db.Take(&s, id).Error)
	return s
}

func wantStale(t *testing.T, err error) {
	t.Helper()
	var c *dbguard.Conflict
	if !errors.As(err, &c) || c.Kind != dbguard.Stale {
		t.Fatalf("error is %v, want a stale conflict", err)
	}
}

func TestVersionOfNewRows(t *testing.T) {
	each(t, func(t *testing.T, db *gorm.DB) {
		rows := []Stock{{Left: 1}, {Left: 2, Version: 7}}
		wantNil(t, db.Create(&rows).Error)
		if rows[0].Version != 1 || rows[1].Version != 7 {
			t.Errorf("versions in memory are %d and %d, want 1 and 7", rows[0].Version, rows[1].Version)
		}
		if s := stock(t, db, rows[0].ID); s.Version != 1 {
			t.Errorf("version is %d, want 1", s.Version)
		}
		wantNil(t, db.Exec("INSERT INTO stocks (id, `left`) VALUES (9, 0)").Error)
		if s := stock(t, db, 9); s.Version != 1 {
			t.Errorf("version of a raw insert is %d, want 1", s.Version)
		}
	})
}

// TestEveryUpdateCounts: whoever updates, and whatever it sets, the version
// grows.
func TestEveryUpdateCounts(t *testing.T) {
	each(t, func(t *testing.T, db *gorm.DB) {
		wantNil(t, db.Create(&Stock{ID: 1, Left: 5}).Error)
		want := dbguard.Version(1)
		for name, update := range map[string]func() *gorm.DB{
			"map":        func() *gorm.DB { return db.Model(&Stock{ID: 1}).Updates(map[string]any{"left": 4}) },
			"struct":     func() *gorm.DB { return db.Model(&Stock{ID: 1}).Updates(Stock{Left: 3}) },
			"column":     func() *gorm.DB { return db.Model(&Stock{}).Where("id = ?", 1).UpdateColumn("left", 2) },
			"expression": func() *gorm.DB { return db.Model(&Stock{ID: 1}).Update("left", gorm.Expr("? + 1", gorm.Expr("id"))) },
			"save":       func() *gorm.DB { s := stock(t, db, 1); s.Left++; return db.Save(&s) },
			"its own":    func() *gorm.DB { return db.Model(&Stock{ID: 1}).Updates(map[string]any{"left": 1, "version": 100}) },
			"slice":      func() *gorm.DB { return db.Model(&[]Stock{{ID: 1}}).Update("left", 7) },
		} {
			tx := update()
			wantNil(t, tx.Error)
			want++
			if s := stock(t, db, 1); tx.RowsAffected != 1 || s.Version != want {
				t.Fatalf("after %s: %d rows, version %d, want 1 and %d", name, tx.RowsAffected, s.Version, want)
			}
		}
	})
}

func TestCompare(t *testing.T) {
	each(t, func(t *testing.T, db *gorm.DB) {
		wantNil(t, db.Create(&Stock{ID: 1, Left: 5}).Error)
		wantNil(t, db.Create(&Stock{ID: 2, Left: 5}).Error)
		mine, theirs := stock(t, db, 1), stock(t, db, 1)
		wantNil(t, db.Model(&theirs).Update("left", 4).Error)
		if theirs.Version != 2 {
			t.Errorf("version in memory is %d, want 2", theirs.Version)
		}
		wantNil(t, db.Model(&theirs).Update("left", 3).Error)

		wantStale(t, db.Model(&mine).Update("left", 9).Error)
		mine = Stock{ID: 1, Left: 9, Version: 1}
		wantStale(t, db.Model(&mine).Updates(map[string]any{"left": 9}).Error)
		wantStale(t, db.Model(&mine).Where("id = 1").Or("id = 99").Update("left", 9).Error)
		wantStale(t, db.Save(&mine).Error)
		wantStale(t, db.Unscoped().Model(&mine).Updates(&Stock{Left: 9}).Error)
		if s := stock(t, db, 1); s.Left != 3 || s.Version != 3 {
			t.Errorf("row is %+v, want left 3 and version 3", s)
		}
		if s := stock(t, db, 2); s.Left != 5 || s.Version != 1 {
			t.Errorf("the other row is %+v", s)
		}
		// A model without its key was not loaded: no rows are chosen by version.
		wantIs(t, db.Model(&Stock{Version: 1}).Update("left", 0).Error, gorm.ErrMissingWhereClause)
	})
}

func TestVersionInMemoryIsUndone(t *testing.T) {
	each(t, func(t *testing.T, db *gorm.DB) {
		wantNil(t, db.Create(&Stock{ID: 1, Left: 5}).Error)
		s := stock(t, db, 1)
		tx := begin(t, db, dbguard.Options{})
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

// TestReusedStatement: a second use of one *gorm.DB must not write the values
// of the first.
func TestReusedStatement(t *testing.T) {
	each(t, func(t *testing.T, db *gorm.DB) {
		wantNil(t, db.Create(&Stock{ID: 1, Left: 5}).Error)
		q := db.Model(&Stock{}).Where("id = ?", 1)
		wantNil(t, q.Update("left", 4).Error)
		wantNil(t, q.Update("left", 3).Error)
		if s := stock(t, db, 1); s.Left != 3 || s.Version != 3 {
			t.Errorf("row is %+v, want left 3 and version 3", s)
		}
	})
}

func TestNothingToUpdate(t *testing.T) {
	each(t, func(t *testing.T, db *gorm.DB) {
		wantNil(t, db.Create(&Stock{ID: 1, Left: 5}).Error)
		s := stock(t, db, 1)
		wantNil(t, db.Model(&s).Updates(Stock{}).Error)
		if got := stock(t, db, 1); got != s || s.Version != 1 {
			t.Errorf("row is %+v, in memory %+v, want both unchanged", got, s)
		}
	})
}

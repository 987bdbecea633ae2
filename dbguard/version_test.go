package dbguard_test

import (
	"errors"
	"fmt"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

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
	var c *dbguard.ConflictError
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
		wantNil(t, db.Exec(fmt.Sprintf("INSERT INTO stocks (id, %s) VALUES (9, 0)", db.Statement.Quote("left"))).Error)
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
			"select":     func() *gorm.DB { return db.Model(&Stock{ID: 1}).Select("Left").Updates(Stock{Left: 6}) },
			"omit":       func() *gorm.DB { return db.Model(&Stock{ID: 1}).Omit("Version").Updates(Stock{Left: 6}) },
			"generics": func() *gorm.DB {
				n, err := gorm.G[Stock](db).Where("id = ?", 1).Updates(bg, Stock{Left: 5})
				return &gorm.DB{Error: err, RowsAffected: int64(n)}
			},
			"generics, a set": func() *gorm.DB {
				n, err := gorm.G[Stock](db).Where("id = ?", 1).Set(clause.Assignment{Column: clause.Column{Name: "left"}, Value: 4}).Update(bg)
				return &gorm.DB{Error: err, RowsAffected: int64(n)}
			},
			"upper case": func() *gorm.DB { return db.Model(&Stock{ID: 1}).Updates(map[string]any{"VERSION": 100}) },
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
		wantStale(t, db.Model(&mine).Select("Left").Updates(Stock{Left: 9}).Error)
		wantStale(t, db.Omit("Version").Updates(&mine).Error)
		_, err := gorm.G[Stock](db).Where("id = 1").Updates(bg, mine)
		wantStale(t, err)
		wantStale(t, db.Unscoped().Model(&mine).Updates(&Stock{Left: 9}).Error)
		if s := stock(t, db, 1); s.Left != 3 || s.Version != 3 {
			t.Errorf("row is %+v, want left 3 and version 3", s)
		}
		if s := stock(t, db, 2); s.Left != 5 || s.Version != 1 {
			t.Errorf("the other row is %+v", s)
		}
		// The values are a whole row, too.
		wantStale(t, db.Model(&Stock{}).Updates(mine).Error)
		wantStale(t, db.Model(&Stock{}).Where("id = 1").Updates(&mine).Error)
		wantStale(t, db.Model(&Stock{}).Where("id = 1\n\tOR 1 = 1").Updates(&mine).Error)
		wantNil(t, db.Model(&Stock{}).Updates(&theirs).Error)
		if s := stock(t, db, 1); s.Version != 4 || theirs.Version != 4 {
			t.Errorf("row is %+v, in memory %+v, want version 4", s, theirs)
		}
		wantNil(t, db.Model(&theirs).Or("id = 99").Update("left", 2).Error)
		// A model without its key was not loaded: no rows are chosen by version.
		wantIs(t, db.Model(&Stock{Version: 1}).Update("left", 0).Error, gorm.ErrMissingWhereClause)
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

		s := stock(t, db, 1)
		q = db.Model(&s).Where("id = ?", 1)
		wantNil(t, q.Update("left", 2).Error)
		wantNil(t, q.Update("left", 1).Error) // it expects the new version only
		wantNil(t, db.Exec("UPDATE stocks SET version = 9").Error)
		wantStale(t, q.Update("left", 0).Error)
	})
}

// TestVersionAssigned: gorm copies what is assigned into the model, but a version
// is not what was assigned.
func TestVersionAssigned(t *testing.T) {
	each(t, func(t *testing.T, db *gorm.DB) {
		wantNil(t, db.Create(&Stock{ID: 1, Left: 5}).Error)
		blank := Stock{ID: 1}
		wantNil(t, db.Model(&blank).Updates(map[string]any{"left": 4, "version": 100}).Error)
		wantNil(t, db.Model(&blank).Update("left", 3).Error)

		loaded, copied := stock(t, db, 1), Stock{}
		wantNil(t, db.Model(&copied).Where("id = 1").Updates(&loaded).Error)
		wantNil(t, db.Model(&copied).Update("left", 2).Error)
		wantStale(t, db.Model(&loaded).Updates(map[string]any{"left": 1, "version": 5}).Error)
		if s := stock(t, db, 1); s.Left != 2 || s.Version != 5 || loaded.Version != 4 {
			t.Errorf("row is %+v, in memory %+v, want versions 5 and 4", s, loaded)
		}
	})
}

func TestNothingToUpdate(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *gorm.DB) {
		wantNil(t, db.Create(&Stock{ID: 1, Left: 5}).Error)
		s := stock(t, db, 1)
		wantNil(t, db.Model(&s).Updates(Stock{}).Error)
		if got := stock(t, db, 1); got != s || s.Version != 1 {
			t.Errorf("row is %+v, in memory %+v, want both unchanged", got, s)
		}
	})
}

// TestWritesThatBypassVersions has writes that would not compare, or put a version back,
// so that another's compare would pass by accident.
func TestWritesThatBypassVersions(t *testing.T) {
	each(t, func(t *testing.T, db *gorm.DB) {
		wantNil(t, db.Create(&Stock{ID: 1, Left: 5, Version: 3}).Error)
		for name, write := range map[string]func() *gorm.DB{
			"upsert of all": func() *gorm.DB {
				return db.Clauses(clause.OnConflict{UpdateAll: true}).Create(&Stock{ID: 1, Left: 9})
			},
			"unscoped upsert": func() *gorm.DB {
				return db.Unscoped().Clauses(clause.OnConflict{UpdateAll: true}).Create(&Stock{ID: 1, Left: 9})
			},
			"save of a slice":           func() *gorm.DB { return db.Save(&[]Stock{{ID: 1, Left: 9, Version: 3}}) },
			"save of a missing row":     func() *gorm.DB { return db.Save(&Stock{ID: 2, Left: 9}) },
			"some loaded rows":          func() *gorm.DB { return db.Model(&[]Stock{{ID: 1, Version: 3}, {ID: 2}}).Update("left", 9) },
			"some pointers":             func() *gorm.DB { return db.Model([]*Stock{{ID: 2}, {ID: 1, Version: 3}}).Update("left", 9) },
			"a row twice":               func() *gorm.DB { return db.Model(&[]Stock{{ID: 1, Version: 3}, {ID: 1, Version: 3}}).Update("left", 9) },
			"a pointer twice":           func() *gorm.DB { s := &Stock{ID: 1, Version: 3}; return db.Model([]*Stock{s, s}).Update("left", 9) },
			"a row to be deleted twice": func() *gorm.DB { return db.Delete(&[]Stock{{ID: 1, Version: 3}, {ID: 1, Version: 3}}) },
			"some to be deleted":        func() *gorm.DB { return db.Delete(&[]Stock{{ID: 1, Version: 3}, {ID: 2}}) },
		} {
			if err := write().Error; !errors.Is(err, dbguard.ErrVersion) {
				t.Errorf("%s: error is %v, want ErrVersion", name, err)
			}
		}
		var rows int64
		wantNil(t, db.Model(&Stock{}).Count(&rows).Error)
		if s := stock(t, db, 1); s.Left != 5 || s.Version != 3 || rows != 1 {
			t.Errorf("row is %+v, want it as it was, and no other", s)
		}
		wantNil(t, db.Clauses(clause.OnConflict{DoNothing: true}).Create(&Stock{ID: 1, Left: 9}).Error)
	})
}

func TestUnscopedCreate(t *testing.T) {
	each(t, func(t *testing.T, db *gorm.DB) {
		wantNil(t, db.Unscoped().Create(&Stock{ID: 1}).Error)
		if s := stock(t, db, 1); s.Version != 1 {
			t.Errorf("version is %d, want 1: 0 is never compared", s.Version)
		}
	})
}

type pointed struct {
	ID      int64
	Left    int
	Version *dbguard.Version
}

type hiddenVersion struct{ Version dbguard.Version }

type embedding struct {
	ID   int64
	Left int
	hiddenVersion
	Version dbguard.Version
}

type Revision struct {
	Rev dbguard.Version
}

type embedded struct {
	Revision
	ID   int64
	Left int
}

type twoVersions struct {
	ID   int64
	Left int
	A, B dbguard.Version
}

type keyless struct {
	No      string
	Version dbguard.Version
}

func TestVersionFields(t *testing.T) {
	each(t, func(t *testing.T, db *gorm.DB) {
		wantNil(t, db.AutoMigrate(&pointed{}, &embedding{}, &embedded{}, &twoVersions{}, &keyless{}))

		p := pointed{}
		wantNil(t, db.Create(&p).Error)
		old := dbguard.Version(1)
		wantNil(t, db.Model(&p).Update("left", 1).Error)
		if *p.Version != 2 {
			t.Errorf("version is %d, want 2", *p.Version)
		}
		wantStale(t, db.Model(&pointed{ID: p.ID, Version: &old}).Update("left", 2).Error)
		wantNil(t, db.Model(&pointed{ID: p.ID}).Update("left", 2).Error)

		g := embedding{}
		wantNil(t, db.Create(&g).Error)
		stale := g
		wantNil(t, db.Model(&g).Update("left", 1).Error)
		wantStale(t, db.Model(&stale).Update("left", 2).Error)

		e := embedded{}
		wantNil(t, db.Create(&e).Error)
		was := e
		wantNil(t, db.Model(&e).Update("left", 1).Error)
		wantStale(t, db.Model(&was).Update("left", 2).Error)

		wantIs(t, db.Create(&twoVersions{}).Error, dbguard.ErrVersion)
		wantIs(t, db.Model(&twoVersions{ID: 1}).Update("left", 2).Error, dbguard.ErrVersion)

		wantNil(t, db.Create(&keyless{No: "a"}).Error)
		wantIs(t, db.Model(&keyless{Version: 1}).Where("no = ?", "a").Update("no", "b").Error, dbguard.ErrVersion)
	})
}

// TestSoftDeleteAndVersion: with a soft delete, a compare must not count as the
// condition that gorm requires.
func TestSoftDeleteAndVersion(t *testing.T) {
	type parcel struct {
		ID        int64
		Left      int
		DeletedAt gorm.DeletedAt
		Version   dbguard.Version
	}
	each(t, func(t *testing.T, db *gorm.DB) {
		wantNil(t, db.AutoMigrate(&parcel{}))
		p := parcel{}
		wantNil(t, db.Create(&p).Error)
		old := p
		wantNil(t, db.Model(&p).Update("left", 1).Error)
		wantStale(t, db.Model(&old).Where("1 = 1").Or("1 = 1").Update("left", 2).Error)
		wantIs(t, db.Model(&parcel{Version: 2}).Update("left", 2).Error, gorm.ErrMissingWhereClause)
		wantNil(t, db.Delete(&p).Error)
		wantStale(t, db.Model(&p).Update("left", 3).Error)
	})
}

package dbtx_test

import (
	"errors"
	"slices"
	"testing"

	"gorm.io/gorm"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/internal/dbtx"
)

// TestAliasedWrite: gorm has the alias in place of the table's name.
func TestAliasedWrite(t *testing.T) {
	cases := []struct {
		table     string
		model     any
		covered   bool
		uncovered []string
	}{
		{"stocks AS s", nil, false, []string{"stocks"}},
		{"stocks s", nil, false, []string{"stocks"}},
		{"stocks  as  s", &Stock{}, false, []string{"stocks"}},
		{"stocks AS s", &Stock{ID: 1, Version: 1}, true, nil},
		{"stocks s", &Stock{ID: 1, Version: 1}, true, nil},
		{"stocks", &Stock{ID: 1, Version: 1}, true, nil},
		{"stocks_2 AS s", &Stock{ID: 1, Version: 1}, true, nil}, // where the row is followed
		{"stocks_2", &Stock{ID: 1, Version: 1}, true, nil},
		{"stocks_2 AS stocks", nil, false, []string{"stocks_2"}},
	}
	each(t, func(t *testing.T, db *gorm.DB) {
		wantNil(t, db.Table("stocks_2").AutoMigrate(&Stock{}))
		wantNil(t, db.Create(&Stock{ID: 1, Left: 5}).Error)
		wantNil(t, db.Table("stocks_2").Create(&Stock{ID: 1, Left: 5}).Error)
		for _, tt := range cases {
			if db.Name() == "sqlite" && tt.table == "stocks s" {
				continue // it wants the AS
			}
			tx := begin(t, db, dbtx.Options{})
			wantNil(t, tx.Protect(&Stock{ID: 1}))
			q := tx.DB().Table(tt.table).Where("id = 1")
			if tt.model != nil {
				q = q.Model(tt.model)
			}
			wantNil(t, q.Update("left", 4).Error)
			if c := tx.Coverage(); !c.Wrote || c.Covered != tt.covered || !slices.Equal(c.Uncovered, tt.uncovered) {
				t.Errorf("%s, %+v: coverage is %+v", tt.table, tt.model, c)
			}
			tx.Rollback()
		}
	})
}

// TestUnknownTable: a write may then have been one of any row.
func TestUnknownTable(t *testing.T) {
	each(t, func(t *testing.T, db *gorm.DB) {
		wantNil(t, db.Create(&Stock{ID: 1, Left: 5}).Error)
		wantNil(t, db.Create(&Order{ID: 1}).Error)
		tx := begin(t, db, dbtx.Options{})
		wantNil(t, tx.Protect(&Stock{ID: 1}))
		s := stock(t, tx.DB(), 1)
		write := tx.DB().Table("stocks AS s, orders AS o").Where("s.id = 1 AND o.id = 1")
		err := write.Updates(map[string]any{"s.left": 4, "s.version": 2}).Error
		if db.Name() != "mysql" {
			if c := tx.Coverage(); err == nil || c.Wrote {
				t.Errorf("two tables are updated at once: %v, coverage %+v", err, c)
			}
			return
		}
		wantNil(t, err)
		if c := tx.Coverage(); c.Covered || !slices.Equal(c.Uncovered, []string{"?"}) {
			t.Errorf("coverage is %+v, want none of any table", c)
		}
		wantStale(t, tx.DB().Model(&s).Update("left", 3).Error)
		tx.Rollback()
		if c := tx.Conflict(); c == nil || !business(c) {
			t.Errorf("conflict is %+v with evidence %+v, want an own write", c, evidence(c))
		}
	})
}

// TestAliasedOverlap: an alias hides neither who wrote a row nor that it is
// protected.
func TestAliasedOverlap(t *testing.T) {
	each(t, func(t *testing.T, db *gorm.DB) {
		wantNil(t, db.Create(&Stock{ID: 1, Left: 5}).Error)
		tx := begin(t, db, dbtx.Options{})
		wantNil(t, tx.Protect(&Stock{ID: 1}))
		stock(t, tx.DB(), 1)
		next := map[string]any{"left": 4, "version": 2}
		wantNil(t, tx.DB().Table("stocks AS s").Where("s.id = 1").Updates(next).Error)
		stock(t, tx.DB(), 1) // what it has written itself

		stale := tx.DB().Table("stocks AS s").Model(&Stock{ID: 1, Version: 9}).Update("left", 3).Error
		var c *dbguard.ConflictError
		if !errors.As(stale, &c) || !c.Evidence.Protected || c.Table != "stocks" {
			t.Errorf("error is %v, %+v, want a conflict on the protected row of stocks", stale, c)
		}
	})
}

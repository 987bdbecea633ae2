package promises_test

import (
	"context"
	"errors"
	"testing"

	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/guard/guardtest"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
)

// writesBefore has a plugin send SQL right before each UPDATE of gorm.
func writesBefore(t *testing.T, db *gorm.DB, query string) {
	t.Helper()
	wantNil(t, db.Callback().Update().Before("gorm:update").Register("test:audit", func(db *gorm.DB) {
		_ = db.AddError(db.Session(&gorm.Session{NewDB: true}).Exec(query).Error)
	}))
}

// TestPluginWritesBeforeAnUpdate: what a plugin writes right before an UPDATE that matches no row
// is not forgotten with that. Its lost COMMIT is not taken for one of nothing.
func TestPluginWritesBeforeAnUpdate(t *testing.T) {
	for name, updates := range map[string]map[string]any{"of no row": {"amount": 3}, "of no column": {}} {
		t.Run(name, func(t *testing.T) {
			dsn := teststack.MySQL(t)
			direct := testdb.OpenMySQL(t, dsn)
			wantNil(t, direct.AutoMigrate(&Order{}, &Label{}))
			k := testdb.NewLink(t, testdb.AddrOf(t, dsn))
			db := testdb.OpenMySQL(t, k.Through(t, dsn))
			g := guardtest.New(t, db)
			writesBefore(t, db, "INSERT INTO orders (no) VALUES ('audit')")
			err := loseCommit(g, k, "label:x", func(_ context.Context, tx *gorm.DB) error {
				return tx.Model(&Label{}).Where("code = ?", "x").Updates(updates).Error
			}, false)
			if !errors.Is(err, guard.ErrUnknown) {
				t.Errorf("error is %v, want ErrUnknown", err)
			}
		})
	}
}

// TestPluginRaisesTheVersionBefore: nor is it taken for another writer's.
func TestPluginRaisesTheVersionBefore(t *testing.T) {
	each(t, func(e *env) {
		e.create(&Stock{ID: 1, Left: 9})
		writesBefore(e.t, e.db, "UPDATE stocks SET version = version + 1 WHERE id = 1")
		err := e.Apply(bg, "stock:1", guard.Update(&Stock{ID: 1}, take))
		if err == nil || errors.Is(err, guard.ErrIntercepted) {
			e.t.Errorf("error is %v, want one of a version that is old", err)
		}
		e.wantNoEvent()
	})
}

// TestPluginReadsBehindAnUpdate: a read that comes right behind an UPDATE of gorm does not make it
// one that only the lock would guard.
func TestPluginReadsBehindAnUpdate(t *testing.T) {
	for name, read := range map[string]func(*gorm.DB) error{
		"by Find": func(tx *gorm.DB) error { return tx.Find(&[]Order{}).Error },
		"by Raw":  func(tx *gorm.DB) error { return tx.Raw("\n\tSELECT no FROM orders").Scan(&[]string{}).Error },
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(e *env) {
				e.create(&Stock{ID: 1, Left: 9})
				wantNil(e.t, e.db.Callback().Update().After("gorm:update").Before("belay:noted").Register("test:read", func(db *gorm.DB) {
					_ = db.AddError(read(db.Session(&gorm.Session{NewDB: true})))
				}))
				g, _ := e.dbOnly(guard.Config{})
				wantNil(e.t, g.Apply(bg, "stock:1", guard.Update(&Stock{ID: 1}, take)))
			})
		})
	}
}

package wild

import (
	"context"
	"fmt"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/guard"
)

// shop makes another schema and returns its name. It is gone when the test ends.
func (e *env) shop() string {
	e.t.Helper()
	if e.db.Name() == "postgres" {
		e.must(e.db.Exec("CREATE SCHEMA shop").Error)
		return "shop"
	}
	name := e.db.Migrator().CurrentDatabase() + "_shop"
	e.must(e.db.Exec("CREATE DATABASE " + name).Error)
	e.t.Cleanup(func() { e.must(e.db.Exec("DROP DATABASE " + name).Error) })
	return name
}

// inShop has tables in another schema.
func inShop(e *env) gorm.Option {
	e.t.Helper()
	return &gorm.Config{NamingStrategy: schema.NamingStrategy{TablePrefix: e.shop() + "."}}
}

// TestTableOfAnotherSchema, with and without a table of the same name in the current
// one.
func TestTableOfAnotherSchema(t *testing.T) {
	for _, namesake := range []bool{false, true} {
		t.Run(fmt.Sprintf("namesake=%t", namesake), func(t *testing.T) {
			on(t, "mysql postgres", func(e *env) {
				plain := e
				e = newEnv(e.t, e.database, e.open, inShop(e))
				e.migrate(&Account{})
				if namesake {
					plain.migrate(&Account{})
				}
				e.must(dbguard.Check(bg, e.db, &Account{}))
				e.wantOnce("a", insert(Account{Email: "a"}))
				e.create(&Account{ID: 9, Email: "b"})
				rename := func(a *Account) error { a.Name += "x"; return nil }
				e.want(e.Apply(bg, "b", guard.Update(&Account{ID: 9}, rename)), "done", 0)
				e.want(e.Apply(bg, "b", guard.Update(&Account{ID: 9, Version: 1}, rename)), "stale", 0)
			})
		})
	}
}

// TestTableAtRunTime: the row is the same model's in the table that the statement has.
func TestTableAtRunTime(t *testing.T) {
	each(t, func(e *env) {
		e.migrate(&Account{})
		e.must(e.db.Table("accounts_2026").AutoMigrate(&Account{}))
		create := func() guard.Op {
			return func(_ context.Context, tx *gorm.DB) error {
				return tx.Table("accounts_2026").Create(&Account{Email: "a"}).Error
			}
		}
		e.wantOnce("a", create, guard.Protects(&Account{Email: "a"}))
	})
}

// TestNamesInUpperCase: columns are called as the fields are.
func TestNamesInUpperCase(t *testing.T) {
	each(t, func(e *env) {
		e.migrate(&Account{})
		e.wantOnce("a", insert(Account{Email: "a"}))
	}, &gorm.Config{NamingStrategy: schema.NamingStrategy{NoLowerCase: true}})
}

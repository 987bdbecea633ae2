package promises_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/guard/guardtest"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/once"
)

// rekeyed returns the statements that give a table of package once the key which one needs that
// is partitioned by age.
func rekeyed(db *gorm.DB, table string) []string {
	switch db.Name() {
	case "mysql":
		return []string{"ALTER TABLE " + table + " DROP PRIMARY KEY, ADD PRIMARY KEY (request, created_at)"}
	case "postgres":
		return []string{"ALTER TABLE " + table + " DROP CONSTRAINT " + table + "_pkey, ADD PRIMARY KEY (request, created_at)"}
	}
	return []string{
		"ALTER TABLE " + table + " RENAME TO before",
		"CREATE TABLE " + table + " AS SELECT * FROM before",
		"CREATE UNIQUE INDEX other ON " + table + " (request, created_at)",
	}
}

// TestForWithoutItsKey: where the tables of requests do not keep requests apart, no request
// is served, and Check says why.
func TestForWithoutItsKey(t *testing.T) {
	testdb.EachWithPostgres(t, func(t *testing.T, open func(...gorm.Option) *gorm.DB) {
		for _, table := range []string{"belay_once", "belay_answer"} {
			t.Run(table, func(t *testing.T) {
				db := open() // which has read no index yet
				wantNil(t, db.Migrator().DropTable("belay_once", "belay_answer", &Stock{}, "before"))
				wantNil(t, errors.Join(once.Migrate(bg, db), db.AutoMigrate(&Stock{})))
				for _, statement := range rekeyed(db, table) {
					wantNil(t, db.Exec(statement).Error)
				}
				e := &env{Guard: guardtest.New(t, db), t: t, db: db, open: open}
				e.create(&Stock{ID: 1, Left: 9})
				if err := once.Check(bg, db); err == nil || !strings.Contains(err.Error(), table+" has no unique index on (request) alone") {
					t.Errorf("Check returns %v", err)
				}
				r := request("a")
				for range 2 {
					wantIs(t, e.Apply(bg, "sku:1", guard.Update(&Stock{ID: 1}, take), guard.For(r)), dbguard.ErrUnprotectable)
					wantIs(t, e.Apply(bg, "sku:1", guard.Update(&Stock{ID: 1}, take), guard.For(r), guard.Combine()), dbguard.ErrUnprotectable)
					_, err := guard.Once(bg, e.Guard.Guard, r, func(context.Context, *gorm.DB) (int, error) {
						t.Error("the operation ran")
						return 1, nil
					})
					wantIs(t, err, dbguard.ErrUnprotectable)
				}
				if left := e.stock(1).Left; left != 9 {
					t.Errorf("%d are left, want 9", left)
				}
				e.wantClaims(0)
				e.wantNoEvent()
			})
		}
	})
}

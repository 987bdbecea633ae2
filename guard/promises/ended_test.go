package promises_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"gorm.io/gorm"
)

// TestConflictThatEndsTheTransaction: SQLite rolls the transaction back where a conflict is to
// do that. No later statement of the operation is committed alone.
func TestConflictThatEndsTheTransaction(t *testing.T) {
	for name, statement := range map[string]string{
		"statement":  "INSERT OR ROLLBACK INTO orders (no) VALUES ('there')",
		"constraint": "INSERT INTO strict (no) VALUES ('there')",
		"trigger":    "INSERT INTO raises (no) VALUES ('there')",
	} {
		t.Run(name, func(t *testing.T) {
			e := onSQLite(t)
			for _, ddl := range []string{
				"CREATE TABLE strict (no TEXT UNIQUE ON CONFLICT ROLLBACK)",
				"INSERT INTO strict VALUES ('there')",
				"CREATE TABLE raises (no TEXT)",
				"CREATE TRIGGER raise BEFORE INSERT ON raises BEGIN SELECT RAISE(ROLLBACK, 'no'); END",
			} {
				wantNil(t, e.db.Exec(ddl).Error)
			}
			e.create(&Order{No: "there"})
			for _, ends := range []error{nil, errors.New("sold out")} {
				err := e.Do(bg, "k", func(_ context.Context, tx *gorm.DB) error {
					wantNil(t, tx.Create(&Order{No: "before"}).Error)
					if tx.Exec(statement).Error == nil {
						t.Error("the row was inserted")
					}
					if tx.Create(&Order{No: "behind"}).Error == nil {
						t.Error("a statement behind the end was executed")
					}
					return ends
				})
				if err == nil {
					t.Error("the operation succeeded")
				}
				var rows []string
				wantNil(t, e.db.Model(&Order{}).Pluck("no", &rows).Error)
				if !slices.Equal(rows, []string{"there"}) {
					t.Errorf("the rows are %q, want the one that was there", rows)
				}
			}
			wantNil(t, e.Do(bg, "k", nop))
		})
	}
	t.Run("others", func(t *testing.T) {
		e := onSQLite(t)
		e.create(&Order{No: "there"})
		wantNil(t, e.Do(bg, "k", func(_ context.Context, tx *gorm.DB) error {
			if tx.Exec("INSERT INTO orders (no) VALUES ('there')").Error == nil {
				t.Error("the row was inserted")
			}
			return tx.Create(&Order{No: "behind"}).Error
		}))
		if n := e.count(&Order{}); n != 2 {
			t.Errorf("%d rows, want 2", n)
		}
	})
}

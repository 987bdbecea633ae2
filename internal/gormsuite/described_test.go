package gormsuite_test

import (
	"errors"
	"slices"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/belaygo/belay/internal/dbtx"
	"github.com/belaygo/belay/internal/dbtx/sqlvalue"
	"github.com/belaygo/belay/internal/dbtx/statement"
	"github.com/belaygo/belay/internal/gormfront"
	"github.com/belaygo/belay/internal/testdb"
)

// TestDescribed: the engine is given each statement as GORM sends it: the values of an
// INSERT, and the keys and versions that an UPDATE or DELETE compares.
func TestDescribed(t *testing.T) {
	t.Parallel()
	testdb.EachWithPostgres(t, func(t *testing.T, open func(...gorm.Option) *gorm.DB) {
		seen := 0
		recordAll(t, open, gorm.Config{}, mode{do: inGuarded, prepare: func(db *gorm.DB) error {
			cb := db.Callback()
			insert := func(db *gorm.DB) { seen += describedInsert(t, db) }
			update := func(db *gorm.DB) { seen += describedUpdate(t, db) }
			return errors.Join(
				dbtx.Install(db),
				cb.Create().After("gorm:create").Before("belay:inserted").Register("test:described", insert),
				cb.Update().After("gorm:update").Before("belay:noted").Register("test:described", update),
				cb.Delete().After("gorm:delete").Before("belay:noted").Register("test:described", update),
			)
		}})
		if seen < 100 {
			t.Errorf("only %d rows were compared", seen)
		}
	})
}

// describedInsert compares the description of an INSERT with its VALUES. It returns the
// number of its rows.
func describedInsert(t *testing.T, db *gorm.DB) int {
	values, ok := db.Statement.Clauses["VALUES"].Expression.(clause.Values)
	if !ok || len(values.Values) == 0 || db.DryRun || db.Statement.Schema == nil || db.Error != nil && db.RowsAffected > 0 {
		return 0
	}
	w := gormfront.Insert(db.Statement)
	if int(w.Values) != len(values.Values) || len(w.Rows) < len(values.Values) || w.Model == nil {
		t.Errorf("%s: %d rows are described, of %d", db.Statement.SQL.String(), len(w.Rows), len(values.Values))
		return 0
	}
	for i, row := range values.Values {
		for c, column := range values.Columns {
			if _, filled := row[c].(clause.Expr); filled { // DEFAULT
				continue
			}
			if got := w.Rows[i].Value(column.Name); !sqlvalue.Equal(got, row[c]) && !w.Model.Fills(column.Name, got) {
				t.Errorf("%s: row %d has %v in %s, want %v", db.Statement.SQL.String(), i, got, column.Name, row[c])
			}
		}
	}
	if db.Error == nil && w.How == statement.Plain && len(gormfront.Images(db.Statement)) < len(values.Values) {
		t.Errorf("%s: a row has no image", db.Statement.SQL.String())
	}
	return len(values.Values)
}

// describedUpdate looks for the keys and versions that a description expects among the
// values that were sent. It returns their number.
func describedUpdate(t *testing.T, db *gorm.DB) int {
	if db.DryRun || db.Statement.Schema == nil {
		return 0
	}
	w := gormfront.Update(db.Statement)
	sent := func(v any) bool {
		return slices.ContainsFunc(db.Statement.Vars, func(sent any) bool { return sqlvalue.Equal(v, sent) })
	}
	for _, e := range w.Expected {
		if !sent(e.Version) || slices.ContainsFunc(e.Key, func(v any) bool { return !sent(v) }) {
			t.Errorf("%s: %v does not have the key %v and the version %d", db.Statement.SQL.String(), db.Statement.Vars, e.Key, e.Version)
		}
	}
	return len(w.Expected)
}

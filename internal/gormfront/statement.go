package gormfront

import (
	"reflect"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/belaygo/belay/internal/dbtx/dialect"
	"github.com/belaygo/belay/internal/dbtx/statement"
	"github.com/belaygo/belay/internal/gormfront/models"
	"github.com/belaygo/belay/internal/rowversion"
)

// Given describes a statement by its table and the rows that it is given, or has returned.
func Given(stmt *gorm.Statement) *statement.Write {
	w := &statement.Write{Table: models.TableOf(stmt)}
	if stmt.Schema == nil {
		return w
	}
	w.Model = model{stmt.Schema}
	models.EachRow(stmt, func(value func(column string) any, row reflect.Value) {
		r := statement.Row{Value: value}
		if row.CanAddr() {
			r.Struct = row.Addr().Interface()
		}
		w.Add(r)
	})
	return w
}

// Insert describes an INSERT that was sent.
func Insert(stmt *gorm.Statement) *statement.Write {
	w := Given(stmt)
	w.How = insertKind(stmt)
	w.Given = models.Count(stmt)
	w.Values = rowsOf(stmt)
	return w
}

// Update describes an UPDATE or DELETE that was sent.
func Update(stmt *gorm.Statement) *statement.Write {
	w := Given(stmt)
	w.How = statement.Blind
	w.Deletes = !models.IsUpdate(stmt)
	expected, _ := models.ExpectedBy(stmt)
	w.Steps = expected.Steps
	for _, l := range expected.Rows {
		w.Expected = append(w.Expected, statement.Expected{
			Value: models.Values(stmt, l.Model), Key: models.Key(stmt, l.Model), Version: rowversion.Version(l.Version),
		})
	}
	if len(w.Expected) > 0 {
		w.Stamp = models.Assigned[rowversion.Stamp](stmt)
		w.Rekeys = models.AssignsKey(stmt)
	}
	return w
}

// rowsOf returns how many rows an INSERT was to make. Later the length of a slice of maps
// does not show it, because gorm appends the returned rows.
func rowsOf(stmt *gorm.Statement) int64 {
	values, _ := stmt.Clauses["VALUES"].Expression.(clause.Values)
	return max(1, int64(len(values.Values))) // none: DEFAULT VALUES
}

// insertKind returns Plain for an INSERT that only inserts, and is the only statement.
func insertKind(stmt *gorm.Statement) statement.How {
	if _, ok := stmt.Clauses["ON CONFLICT"]; ok {
		return statement.Blind
	}
	sql := dialect.Dialect{Name: stmt.DB.Name()}.Statements(stmt.SQL.String())
	if len(sql) != 1 {
		return statement.Raw
	}
	if words := sql[0].Words(); len(words) < 2 || words[0] != "INSERT" || words[1] != "INTO" {
		return statement.Blind // INSERT IGNORE, REPLACE
	}
	return statement.Plain
}

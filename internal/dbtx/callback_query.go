package dbtx

import (
	"fmt"
	"slices"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/belaygo/belay/internal/dbtx/catalogue"
	"github.com/belaygo/belay/internal/dbtx/protected"
	"github.com/belaygo/belay/internal/dbtx/reader"
	"github.com/belaygo/belay/internal/dbtx/sqlvalue"
	"github.com/belaygo/belay/internal/dbtx/statement"
	"github.com/belaygo/belay/internal/gormfront"
	"github.com/belaygo/belay/internal/gormfront/models"
	"github.com/belaygo/belay/internal/rowversion"
)

// loaded notes the versions of the protected rows that a query has returned. If this
// operation saw an older version before, another writer has written the row. A row without a
// version is refused, protected or not: saving it would compare nothing.
func loaded(db *gorm.DB) {
	t := txOf(db.Statement)
	s := db.Statement.Schema
	if t == nil || s == nil || db.DryRun || db.Error != nil || db.RowsAffected == 0 || reader.Own(db.Statement.Context) {
		return
	}
	field := models.FieldOf[rowversion.Version](s)
	if field == nil || !t.selects(db.Statement, field) {
		return
	}
	w := gormfront.Given(db.Statement)
	for _, row := range w.Rows {
		if version, ok := sqlvalue.Indirect(row.Value(field.DBName)).(rowversion.Version); ok && version < 1 && db.Error == nil {
			_ = db.AddError(fmt.Errorf("%w: a row of %s has version %d or NULL, the first one is 1", rowversion.ErrVersion, s.Table, version))
		}
	}
	t.rows.Each(w, func(r *protected.Row, value statement.Value) {
		version, _ := sqlvalue.Indirect(value(field.DBName)).(rowversion.Version)
		if version == 0 || db.Error != nil || t.journal.Touched(r) {
			return
		}
		now := protected.Reading{Found: true, Version: version}
		if w.Model.Declares(r.Model) { // another model may declare another key
			for _, column := range w.Model.Primary() {
				now.Key = append(now.Key, value(column))
			}
		}
		if c := t.judge.Saw(r, now); c != nil {
			db.Error = c
		}
	})
}

// selects reports whether a query is known to have read a column from the model's own
// table. A column that it did not read may have an older value in the struct.
func (t *Tx) selects(stmt *gorm.Statement, f *schema.Field) bool {
	from, _ := stmt.Clauses["FROM"].Expression.(clause.From)
	if !t.journal.SentNow() || len(stmt.Joins)+len(from.Joins)+len(from.Tables) > 0 {
		return false
	}
	if table, ok := models.NamedTable(stmt); !ok || !strings.EqualFold(table, stmt.Schema.Table) {
		return false
	}
	what, ok := stmt.Clauses["SELECT"].Expression.(clause.Select)
	if !ok || what.Expression != nil {
		return false
	}
	return len(what.Columns) == 0 || slices.ContainsFunc(what.Columns, func(c clause.Column) bool {
		name := catalogue.BareName(c.Name)
		return c.Alias == "" && (name == "*" || name == strings.ToLower(f.DBName))
	})
}

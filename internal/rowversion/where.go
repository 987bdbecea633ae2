package rowversion

import (
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/belaygo/belay/internal/gormfront/models"
)

// where adds the expected versions to a statement's conditions, and replaces those of
// an earlier use.
func where(stmt *gorm.Statement, expected models.Expected) {
	c := stmt.Clauses["WHERE"]
	w, _ := c.Expression.(clause.Where)
	given := make([]clause.Expression, 0, len(w.Exprs))
	for _, e := range w.Exprs {
		if _, earlier := e.(compare); !earlier {
			given = append(given, e)
		}
	}
	if len(expected.Rows) == 0 && len(given) == len(w.Exprs) {
		return
	}
	if len(expected.Rows) > 0 && len(given) > 0 {
		given = []clause.Expression{group{clause.Where{Exprs: given}}}
	}
	given = append(given, conditions(stmt, expected)...)
	if len(given) == 0 {
		delete(stmt.Clauses, "WHERE")
		return
	}
	c.Name, c.Expression = "WHERE", clause.Where{Exprs: given}
	stmt.Clauses["WHERE"] = c
}

// compare is a condition that where adds.
type compare struct{ clause.Expression }

// group is a WHERE in parentheses: it may have an OR in it.
type group struct{ clause.Where }

func (g group) Build(b clause.Builder) {
	_ = b.WriteByte('(')
	g.Where.Build(b)
	_ = b.WriteByte(')')
}

// conditions names the rows: gorm does so only for models, and all apart from
// their versions.
func conditions(stmt *gorm.Statement, e models.Expected) (conds []clause.Expression) {
	switch len(e.Rows) {
	case 0:
		return nil
	case 1:
		for _, eq := range condition(stmt, e.Field, e.Rows[0], e.Values) {
			conds = append(conds, compare{eq})
		}
		return conds
	}
	rows := make([]clause.Expression, len(e.Rows))
	for i, r := range e.Rows {
		rows[i] = clause.And(condition(stmt, e.Field, r, true)...)
	}
	return []clause.Expression{compare{clause.Or(rows...)}}
}

func condition(stmt *gorm.Statement, f *schema.Field, r models.Loaded, keys bool) (conds []clause.Expression) {
	eq := func(column string, value any) {
		conds = append(conds, clause.Eq{Column: clause.Column{Table: clause.CurrentTable, Name: column}, Value: value})
	}
	if keys {
		for _, f := range stmt.Schema.PrimaryFields {
			eq(f.DBName, models.Value(stmt.Context, f, r.Model))
		}
	}
	eq(f.DBName, Version(r.Version))
	return conds
}

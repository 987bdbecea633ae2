package rowversion

import (
	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/belaygo/belay/internal/gormfront/models"
)

// deleteVersion adds the compare to a delete, when the model carries a version,
// and the increment to a soft one.
type deleteVersion struct{ updateVersion }

// ModifyStatement implements gorm.StatementModifier.
func (v deleteVersion) ModifyStatement(stmt *gorm.Statement) {
	if stmt.Schema == nil || !only(v.field, stmt) {
		return
	}
	expected := v.among(stmt, models.Indirect(stmt.Dest))
	if len(expected.Rows) == 0 {
		expected = v.among(stmt, models.Indirect(stmt.Model))
	}
	if stmt.Error != nil {
		return
	}
	expected.Values = true
	v.soft(stmt)
	if stmt.SQL.Len() > 0 {
		v.rebuild(stmt, expected)
	} else {
		where(stmt, expected)
	}
	expected.Keep(stmt)
}

// soft calls the delete clauses of the model's other fields first: the clause of a soft
// delete writes its UPDATE itself, and ignores later ones.
func (v deleteVersion) soft(stmt *gorm.Statement) {
	for _, c := range stmt.Schema.DeleteClauses {
		if _, own := c.(deleteVersion); own {
			continue
		}
		if m, ok := c.(gorm.StatementModifier); ok && stmt.SQL.Len() == 0 {
			m.ModifyStatement(stmt)
		}
	}
}

// rebuild writes the UPDATE of a soft delete once more, with the version in it.
func (v deleteVersion) rebuild(stmt *gorm.Statement, expected models.Expected) {
	set, ok := stmt.Clauses["SET"].Expression.(clause.Set)
	if !ok {
		return // not ours to touch
	}
	set = v.with(set, v.current(stmt), 1)
	stmt.Clauses["SET"] = clause.Clause{Name: "SET", Expression: set}
	where(stmt, expected)
	stmt.SQL.Reset()
	stmt.Vars = nil
	stmt.Build(stmt.DB.Callback().Update().Clauses...)
}

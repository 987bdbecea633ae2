package rowversion

import (
	"fmt"
	"reflect"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/belaygo/belay/internal/gormfront/models"
)

// insertVersion gives new rows their version.
type insertVersion struct{ modifier }

// ModifyStatement implements gorm.StatementModifier.
func (v insertVersion) ModifyStatement(stmt *gorm.Statement) {
	if !only(v.field, stmt) {
		return
	}
	if !v.upsert(stmt) {
		_ = stmt.AddError(fmt.Errorf("%w: Save or upsert of all columns of %s, use Create or an update", ErrVersion, stmt.Table))
		return
	}
	models.Each(stmt, func(model reflect.Value) {
		if _, unset := v.field.ValueOf(stmt.Context, model); unset {
			_ = stmt.AddError(v.field.Set(stmt.Context, model, Version(1)))
		}
	})
}

// upsert adds the next version to the assignments of an upsert. It reports false if all
// columns are to be written: gorm's Save does that when its update matches no row, and
// for a slice.
func (v insertVersion) upsert(stmt *gorm.Statement) bool {
	c := stmt.Clauses["ON CONFLICT"]
	on, _ := c.Expression.(clause.OnConflict)
	if on.UpdateAll {
		return false
	}
	if len(on.DoUpdates) > 0 {
		on.DoUpdates = withNext(stmt, v.field, on.DoUpdates)
		c.Expression = on
		stmt.Clauses["ON CONFLICT"] = c
	}
	return true
}

// FirstOfUnscoped gives new rows their versions and stamps in an unscoped Create, for which
// gorm calls no CreateClauses.
func FirstOfUnscoped(db *gorm.DB) {
	s := db.Statement.Schema
	if s == nil || !db.Statement.Unscoped {
		return
	}
	if f := versionOf(s); f != nil {
		insertVersion{modifier{f}}.ModifyStatement(db.Statement)
	}
	if f := stampOf(s); f != nil {
		newStamp{modifier{f}}.ModifyStatement(db.Statement)
	}
}

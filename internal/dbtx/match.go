package dbtx

import (
	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/dbtx/catalogue"
	"github.com/belaygo/belay/internal/dbtx/models"
	"github.com/belaygo/belay/internal/dbtx/sqlvalue"
)

// protectedAmong returns the protected rows among the models of a statement.
func (t *Tx) protectedAmong(stmt *gorm.Statement) (rows []*protectedRow) {
	seen := make(map[*protectedRow]bool)
	t.eachProtected(stmt, func(r *protectedRow, _ func(column string) any) {
		if !seen[r] {
			seen[r] = true
			rows = append(rows, r)
		}
	})
	return rows
}

// eachProtected calls f for every row of a statement that is protected, with its
// values.
func (t *Tx) eachProtected(stmt *gorm.Statement, f func(r *protectedRow, value func(column string) any)) {
	if stmt.Schema == nil {
		return
	}
	models.EachRow(stmt, func(value func(column string) any) {
		for _, r := range t.rowsWith(stmt, value) {
			f(r, value)
		}
	})
}

// rowsWith returns the protected rows of a statement's table that have the values.
func (t *Tx) rowsWith(stmt *gorm.Statement, value func(column string) any) (rows []*protectedRow) {
	table := catalogue.TableOf(stmt)
	t.mu.Lock()
	shapes := t.protected.shapes
	t.mu.Unlock()
	for _, shape := range shapes {
		if !t.sameTable(shape.table, table) {
			continue
		}
		t.mu.Lock()
		for _, r := range t.protected.with(shape, value) {
			if r.is(value) {
				rows = append(rows, r)
			}
		}
		t.mu.Unlock()
	}
	return rows
}

// is reports whether a row with the given values is the row. With NULL in its
// key it is none in particular.
func (r *protectedRow) is(value func(column string) any) bool {
	for i, f := range r.fields {
		v := value(f.DBName)
		if sqlvalue.IsNull(v) {
			return false
		}
		if !sqlvalue.Equal(v, r.values[i]) && (r.stored == nil || !sqlvalue.Equal(v, r.stored[i])) {
			return false
		}
	}
	return true
}

package protected

import (
	"reflect"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// Load reads the row by its key columns into a new struct of a model of its table. It
// returns the zero Value if the row is not there.
func (r *Row) Load(q *gorm.DB, model reflect.Type, lock string) (reflect.Value, error) {
	q = q.Table(r.Table)
	values := r.Values
	if r.Stored != nil {
		values = r.Stored
	}
	for i, f := range r.Fields {
		q = q.Where(clause.Eq{Column: clause.Column{Name: f.DBName}, Value: values[i]})
	}
	if lock != "" {
		q = q.Clauses(lockingClause(lock))
	}
	rows := reflect.New(reflect.SliceOf(model))
	if err := q.Find(rows.Interface()).Error; err != nil || rows.Elem().Len() == 0 {
		return reflect.Value{}, err
	}
	return rows.Elem().Index(0), nil
}

// lockingClause is the end of a SELECT, as the dialect spells it.
type lockingClause string

func (lockingClause) Name() string                   { return "FOR" }
func (l lockingClause) Build(b clause.Builder)       { _, _ = b.WriteString(string(l)) }
func (l lockingClause) MergeClause(c *clause.Clause) { c.Name, c.Expression = "", l }

package dbtx

import (
	"reflect"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"
)

// load reads the row by its key columns into a new struct of a model of its table;
// the zero Value if it is not there.
func (r *protectedRow) load(q *gorm.DB, model reflect.Type, lock string) (reflect.Value, error) {
	q = q.Table(r.table)
	values := r.values
	if r.stored != nil {
		values = r.stored
	}
	for i, f := range r.fields {
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

// kept returns how the database keeps a value of the row.
func (r *protectedRow) kept(f *schema.Field, v any) any {
	for i, own := range r.fields {
		if r.stored != nil && own.DBName == f.DBName {
			return r.stored[i]
		}
	}
	return v
}

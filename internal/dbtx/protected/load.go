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

// LoadThose reads the names of those rows that exist into new structs of the model.
// rows are all of one table and named by the same columns.
func LoadThose(q *gorm.DB, rows []*Row) (reflect.Value, error) {
	first := rows[0]
	found := reflect.New(reflect.SliceOf(first.Schema.ModelType))
	err := q.Table(first.Table).Select(first.Columns()).Where(anyOf(rows)).Find(found.Interface()).Error
	return found.Elem(), err
}

// anyOf is the condition that a row is one of rows.
func anyOf(rows []*Row) clause.Expression {
	if fields := rows[0].Fields; len(fields) == 1 {
		in := clause.IN{Column: clause.Column{Name: fields[0].DBName}}
		for _, r := range rows {
			in.Values = append(in.Values, r.AsStored(fields[0], r.Values[0]))
		}
		return in
	}
	either := make([]clause.Expression, len(rows))
	for i, r := range rows {
		var name []clause.Expression
		for n, f := range r.Fields {
			name = append(name, clause.Eq{Column: clause.Column{Name: f.DBName}, Value: r.AsStored(f, r.Values[n])})
		}
		either[i] = clause.And(name...)
	}
	return clause.Or(either...)
}

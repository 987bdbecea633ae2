package gormfront

import (
	"context"
	"reflect"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/belaygo/belay/internal/dbtx/protected"
	"github.com/belaygo/belay/internal/dbtx/sqlvalue"
	"github.com/belaygo/belay/internal/dbtx/statement"
	"github.com/belaygo/belay/internal/gormfront/models"
)

// Load implements protected.Loader. It reads the row into a new struct.
func (f *Front) Load(ctx context.Context, query protected.Query) (statement.Value, error) {
	s := schemaOf(query)
	rows := reflect.New(reflect.SliceOf(s.ModelType))
	if err := find(f.session(ctx), query, rows).Error; err != nil || rows.Elem().Len() == 0 {
		return nil, err
	}
	return valuesOf(ctx, s, rows.Elem().Index(0)), nil
}

// Text implements protected.Loader. A plugin that has put its own connection before the transaction's, or
// lets gorm build no query, may send something else.
func (f *Front) Text(ctx context.Context, query protected.Query) (string, []any, error) {
	rows := reflect.New(reflect.SliceOf(schemaOf(query).ModelType))
	q := f.session(ctx)
	q.Statement.Clauses["GROUP BY"] = clause.Clause{Expression: unsent{}}
	found := find(q, query, rows)
	if found.Error == nil && (found.Statement.ConnPool != f.db.Statement.ConnPool || found.Statement.SQL.Len() == 0) {
		return "", nil, protected.ErrNoText
	}
	return found.Statement.SQL.String(), found.Statement.Vars, found.Error
}

// unsent is an empty clause of a query, which keeps gorm from sending it. A session that is dry from the
// beginning would keep plugins silent that speak only if a query is sent.
type unsent struct{}

// Build implements clause.Expression.
func (unsent) Build(b clause.Builder) {
	if s, ok := b.(*gorm.Statement); ok {
		s.DryRun = true
	}
}

// find sends a query for rows.
func find(q *gorm.DB, query protected.Query, rows reflect.Value) *gorm.DB {
	r := query.Row
	if len(query.Columns) > 0 {
		q = q.Select(query.Columns)
	}
	if len(query.Any) > 0 {
		q = q.Where(either(query.Any))
	}
	q = q.Table(r.Table)
	values := r.Values
	if r.Stored != nil {
		values = r.Stored
	}
	for i, column := range r.Columns {
		q = q.Where(equal(column, values[i]))
	}
	if query.Lock != "" {
		q = q.Clauses(lockingClause(query.Lock))
	}
	return q.Find(rows.Interface())
}

// schemaOf returns the schema by which a row is read.
func schemaOf(q protected.Query) *schema.Schema {
	if q.Model == nil {
		q.Model = q.Row.Model
	}
	return q.Model.(model).schema
}

// valuesOf returns the values of a struct that was read.
func valuesOf(ctx context.Context, s *schema.Schema, row reflect.Value) statement.Value {
	return func(column string) any {
		if f := models.Column(s, column); f != nil {
			return models.Value(ctx, f, row)
		}
		return nil
	}
}

// LoadThose implements protected.Loader. It reads the rows into new structs.
func (f *Front) LoadThose(ctx context.Context, rows []*protected.Row) (found []statement.Value, err error) {
	first := rows[0]
	s := first.Model.(model).schema
	structs := reflect.New(reflect.SliceOf(s.ModelType))
	err = f.session(ctx).Table(first.Table).Select(first.Columns).Where(anyOf(rows)).Find(structs.Interface()).Error
	for i := range structs.Elem().Len() {
		found = append(found, valuesOf(ctx, s, structs.Elem().Index(i)))
	}
	return found, err
}

// lockingClause is the end of a SELECT, as the dialect spells it.
type lockingClause string

func (lockingClause) Name() string                   { return "FOR" }
func (l lockingClause) Build(b clause.Builder)       { _, _ = b.WriteString(string(l)) }
func (l lockingClause) MergeClause(c *clause.Clause) { c.Name, c.Expression = "", l }

// equal is the condition that a row has a value.
func equal(column string, value any) clause.Expression {
	if d, ok := value.(sqlvalue.Day); ok {
		value = day(d)
	}
	return clause.Eq{Column: clause.Column{Name: column}, Value: value}
}

// either is the condition that one of the lists is met.
func either(lists [][]protected.Condition) clause.Expression {
	exprs := make([]clause.Expression, len(lists))
	for i, all := range lists {
		var conds []clause.Expression
		for _, c := range all {
			conds = append(conds, equal(c.Column, c.Value))
		}
		exprs[i] = clause.And(conds...)
	}
	return clause.Or(exprs...)
}

// anyOf is the condition that a row is one of rows.
func anyOf(rows []*protected.Row) clause.Expression {
	if columns := rows[0].Columns; len(columns) == 1 {
		in := clause.IN{Column: clause.Column{Name: columns[0]}}
		for _, r := range rows {
			in.Values = append(in.Values, stored(r, 0))
		}
		return in
	}
	lists := make([]clause.Expression, len(rows))
	for i, r := range rows {
		var name []clause.Expression
		for n, column := range r.Columns {
			name = append(name, equal(column, stored(r, n)))
		}
		lists[i] = clause.And(name...)
	}
	return clause.Or(lists...)
}

// stored returns a value of a row's name, as a condition has it.
func stored(r *protected.Row, n int) any {
	v := r.AsStored(r.Columns[n], r.Values[n])
	if d, ok := v.(sqlvalue.Day); ok {
		return day(d)
	}
	return v
}

// day is a sqlvalue.Day in a condition.
type day sqlvalue.Day

// Build implements clause.Expression. MySQL rounds a time that it stores to the
// second first, but not one that it casts.
func (d day) Build(b clause.Builder) {
	before, behind := "CAST(", " AS DATE)"
	if d.MySQL {
		before, behind = "CAST(CAST(", " AS DATETIME) AS DATE)"
	}
	_, _ = b.WriteString(before)
	b.AddVar(b, d.Time)
	_, _ = b.WriteString(behind)
}

package dbguard

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"
)

// A protectedRow is a row that the held key protects, named by the columns of a
// unique index.
type protectedRow struct {
	table  string
	schema *schema.Schema
	fields []*schema.Field
	values []any
	own    bool // this transaction wrote it
}

func (r *protectedRow) columns() []string {
	names := make([]string, len(r.fields))
	for i, f := range r.fields {
		names[i] = f.DBName
	}
	return names
}

// is reports whether a model of the given schema is the row.
func (r *protectedRow) is(ctx context.Context, s *schema.Schema, model reflect.Value) bool {
	for i, f := range r.fields {
		mine := s.LookUpField(f.DBName)
		if mine == nil {
			return false
		}
		if v, _ := mine.ValueOf(ctx, model); !equal(v, r.values[i]) {
			return false
		}
	}
	return true
}

// equal compares two values of one column, which may come from models that
// declare it differently.
func equal(a, b any) bool {
	a, b = indirect(a), indirect(b)
	if x, ok := a.(time.Time); ok {
		y, ok := b.(time.Time)
		return ok && x.Equal(y)
	}
	return reflect.DeepEqual(a, b) || fmt.Sprint(a) == fmt.Sprint(b)
}

func indirect(v any) any {
	if rv := reflect.ValueOf(v); rv.Kind() == reflect.Pointer && !rv.IsNil() {
		return rv.Elem().Interface()
	}
	return v
}

// Protect names a row that the held key protects. model is a struct, or a
// pointer to one, whose non-zero fields are the columns of one unique index or
// of the primary key. Only conflicts on protected rows are judged. It returns
// an error that matches ErrUnprotectable if there is no such index.
func (t *Tx) Protect(model any) error {
	m, err := t.parse(model)
	if err != nil {
		return err
	}
	set := m.set()
	if len(set) > 0 && sameColumns(set, m.stmt.Schema.PrimaryFieldDBNames) {
		t.protect(m, set)
		return nil
	}
	indexes, err := t.uniqueIndexes(t.ctx, m.stmt.Table)
	if err != nil {
		return err
	}
	for _, columns := range indexes {
		if sameColumns(set, columns) {
			t.protect(m, set)
			return nil
		}
	}
	return fmt.Errorf("%w: no unique index of %s has just the columns %s", ErrUnprotectable, m.stmt.Table, listing(set))
}

// ProtectPrimary names the row with model's primary key, whatever else is set in
// model. It returns an error that matches ErrUnprotectable if a part of the key
// is zero.
func (t *Tx) ProtectPrimary(model any) error {
	m, err := t.parse(model)
	if err != nil {
		return err
	}
	key := m.stmt.Schema.PrimaryFieldDBNames
	for _, f := range m.stmt.Schema.PrimaryFields {
		if _, zero := f.ValueOf(t.ctx, m.value); zero {
			return fmt.Errorf("%w: %s.%s is not set", ErrUnprotectable, m.stmt.Table, f.DBName)
		}
	}
	if len(key) == 0 {
		return fmt.Errorf("%w: %s has no primary key", ErrUnprotectable, m.stmt.Table)
	}
	t.protect(m, key)
	return nil
}

// ProtectNew names the row that inserting model makes, by the one unique index
// whose columns are set in model. An auto-increment key is not one. It does
// nothing if a row of the table is protected already, and returns an error that
// matches ErrUnprotectable, with the choices, unless exactly one index fits.
func (t *Tx) ProtectNew(model any) error {
	m, err := t.parse(model)
	if err != nil {
		return err
	}
	if t.protects(m.stmt.Table) {
		return nil
	}
	indexes, err := t.uniqueIndexes(t.ctx, m.stmt.Table)
	if err != nil {
		return err
	}
	if pk := m.stmt.Schema.PrimaryFieldDBNames; !slices.ContainsFunc(indexes, func(c []string) bool { return sameColumns(c, pk) }) {
		indexes = append(slices.Clone(indexes), pk) // SQLite lists no index for an integer key
	}
	var fit [][]string
	for _, columns := range indexes {
		if m.covers(columns) {
			fit = append(fit, columns)
		}
	}
	switch len(fit) {
	case 1:
		t.protect(m, fit[0])
		return nil
	case 0:
		return fmt.Errorf("%w: no unique index of %s has all its columns set", ErrUnprotectable, m.stmt.Table)
	}
	choices := make([]string, len(fit))
	for i, columns := range fit {
		choices[i] = listing(columns)
	}
	return fmt.Errorf("%w: several unique indexes of %s are set, name one with Protects: %s",
		ErrUnprotectable, m.stmt.Table, strings.Join(choices, " or "))
}

// parsedModel is a model with its schema.
type parsedModel struct {
	stmt  *gorm.Statement
	value reflect.Value
}

func (t *Tx) parse(model any) (parsedModel, error) {
	v := reflect.ValueOf(model)
	for v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	if v.Kind() != reflect.Struct {
		return parsedModel{}, fmt.Errorf("%w: %T is not a struct or a pointer to one", ErrUnprotectable, model)
	}
	stmt := &gorm.Statement{DB: t.db, Context: t.ctx}
	if err := stmt.Parse(model); err != nil {
		return parsedModel{}, errors.Join(ErrUnprotectable, err)
	}
	return parsedModel{stmt, v}, nil
}

// set returns the columns whose fields are not zero. A version is no part of a
// name.
func (m parsedModel) set() (columns []string) {
	for _, name := range m.stmt.Schema.DBNames {
		f := m.stmt.Schema.FieldsByDBName[name]
		if v, zero := f.ValueOf(m.stmt.Context, m.value); !zero {
			if _, version := v.(Version); !version {
				columns = append(columns, name)
			}
		}
	}
	return columns
}

// covers reports whether the caller set all of columns.
func (m parsedModel) covers(columns []string) bool {
	for _, name := range columns {
		f := m.field(name)
		if f == nil || f.AutoIncrement {
			return false
		}
		if _, zero := f.ValueOf(m.stmt.Context, m.value); zero {
			return false
		}
	}
	return len(columns) > 0
}

func (m parsedModel) field(column string) *schema.Field {
	for name, f := range m.stmt.Schema.FieldsByDBName {
		if strings.EqualFold(name, column) {
			return f
		}
	}
	return nil
}

func (t *Tx) protect(m parsedModel, columns []string) {
	r := &protectedRow{table: m.stmt.Table, schema: m.stmt.Schema}
	for _, name := range columns {
		f := m.field(name)
		v, _ := f.ValueOf(t.ctx, m.value)
		r.fields = append(r.fields, f)
		r.values = append(r.values, v)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.protected = append(t.protected, r)
}

func (t *Tx) protects(table string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.ContainsFunc(t.protected, func(r *protectedRow) bool { return r.table == table })
}

// protectedAmong returns the protected rows among the models of a statement.
func (t *Tx) protectedAmong(stmt *gorm.Statement) (rows []*protectedRow) {
	if stmt.Schema == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range t.protected {
		if r.table != stmt.Table {
			continue
		}
		found := false
		eachModel(stmt, func(model reflect.Value) { found = found || r.is(t.ctx, stmt.Schema, model) })
		if found {
			rows = append(rows, r)
		}
	}
	return rows
}

// sameColumns compares two sets of column names, whose case databases ignore.
func sameColumns(a, b []string) bool {
	if len(a) != len(b) {
		return false
	}
	for _, name := range a {
		if !slices.ContainsFunc(b, func(other string) bool { return strings.EqualFold(name, other) }) {
			return false
		}
	}
	return true
}

func listing(columns []string) string { return "(" + strings.Join(columns, ", ") + ")" }

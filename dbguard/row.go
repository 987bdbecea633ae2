package dbguard

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

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
	model  any  // pointer to the struct that is to be inserted, if ProtectNew named it
	named  bool // by Protect
	own    bool // this transaction wrote it
}

func (r *protectedRow) columns() []string {
	names := make([]string, len(r.fields))
	for i, f := range r.fields {
		names[i] = f.DBName
	}
	return names
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
		t.protect(m, set, protectedRow{named: true})
		return nil
	}
	indexes, err := t.uniqueIndexes(t.ctx, m.stmt.Table)
	if err != nil {
		return err
	}
	for _, columns := range indexes {
		if sameColumns(set, columns) {
			t.protect(m, set, protectedRow{named: true})
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
	t.protect(m, key, protectedRow{})
	return nil
}

// ProtectNew names the row that inserting model makes, by the one unique index
// whose columns are set in model. An auto-increment key is not one. It does
// nothing if Protect has named a row of the table, and returns an error that
// matches ErrUnprotectable, with the choices, unless exactly one index fits.
// Hooks of the model may still alter its values.
func (t *Tx) ProtectNew(model any) error {
	m, err := t.parse(model)
	if err != nil {
		return err
	}
	if t.named(m.stmt.Table) {
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
		var r protectedRow
		if m.value.CanAddr() {
			r.model = m.value.Addr().Interface()
		}
		t.protect(m, fit[0], r)
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
		if _, zero := f.ValueOf(m.stmt.Context, m.value); !zero && f.IndirectFieldType != versionType {
			columns = append(columns, name)
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

func (t *Tx) protect(m parsedModel, columns []string, r protectedRow) {
	r.table, r.schema = m.stmt.Table, m.stmt.Schema
	for _, name := range columns {
		r.fields = append(r.fields, m.field(name))
	}
	r.take(t.ctx, m.value)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.protected = append(t.protected, &r)
}

// take gives the row its values.
func (r *protectedRow) take(ctx context.Context, model reflect.Value) {
	r.values = make([]any, len(r.fields))
	for i, f := range r.fields {
		r.values[i], _ = f.ValueOf(ctx, model)
	}
}

// refresh looks again at the models that a statement inserts: hooks may have
// altered them since ProtectNew.
func (t *Tx) refresh(stmt *gorm.Statement) {
	if stmt.Schema == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	eachModel(stmt, func(model reflect.Value) {
		for _, r := range t.protected {
			if r.model == model.Addr().Interface() {
				r.take(t.ctx, model)
				r.model = nil // once: the struct may be used for another row
			}
		}
	})
}

// named reports whether Protect has named a row of the table.
func (t *Tx) named(table string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.ContainsFunc(t.protected, func(r *protectedRow) bool { return r.table == table && r.named })
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

package dbtx

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/internal/dbtx/catalogue"
	"github.com/belaygo/belay/internal/dbtx/models"
	"github.com/belaygo/belay/internal/dbtx/sqlvalue"
)

// A protectedRow is a row that the held key protects, named by the columns of a
// unique index.
type protectedRow struct {
	table    string
	schema   *schema.Schema
	fields   []*schema.Field
	values   []any
	stored   []any  // values as the database has them, if otherwise
	id       string // identity, of these values
	model    any    // pointer to the struct that is to be inserted, if ProtectNew named it
	named    bool   // by Protect
	followed bool   // by follow, to another table
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
	if len(set) > 0 && catalogue.SameColumns(set, m.stmt.Schema.PrimaryFieldDBNames) {
		return t.protect(m.row(set, protectedRow{named: true}))
	}
	indexes, err := t.uniqueIndexes(m.table())
	if err != nil {
		return err
	}
	for _, columns := range catalogue.Naming(indexes) {
		if catalogue.SameColumns(set, columns) {
			return t.protect(m.row(set, protectedRow{named: true}))
		}
	}
	return fmt.Errorf("%w: no unique index of %s has just the columns %s%s: a column that is 0 counts as not set",
		dbguard.ErrUnprotectable, m.table(), catalogue.Listing(set), catalogue.Nameless(indexes))
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
			return fmt.Errorf("%w: %s.%s is not set", dbguard.ErrUnprotectable, m.table(), f.DBName)
		}
	}
	if len(key) == 0 {
		return fmt.Errorf("%w: %s has no primary key", dbguard.ErrUnprotectable, m.table())
	}
	return t.protect(m.row(key, protectedRow{}))
}

// ProtectNew names the row that inserting model makes, by the one unique index
// whose columns are set in model. An auto-increment key is not one. It does
// nothing if Protect has named a row of the table, or if the row is protected
// already. It returns an error that matches ErrUnprotectable, with the choices,
// unless exactly one index fits. Hooks of the model may still alter its values.
func (t *Tx) ProtectNew(model any) error {
	m, err := t.parse(model)
	if err != nil {
		return err
	}
	m.stmt.Dest = model
	if t.named(m.table()) || len(t.protectedAmong(m.stmt)) > 0 {
		return nil
	}
	indexes, err := t.uniqueIndexes(m.table())
	if err != nil {
		return err
	}
	fit := m.fitting(catalogue.WithPrimary(catalogue.Naming(indexes), m.stmt.Schema.PrimaryFieldDBNames))
	switch len(fit) {
	case 1:
		var r protectedRow
		if m.value.CanAddr() {
			r.model = m.value.Addr().Interface()
		}
		return t.protect(m.row(fit[0], r))
	case 0:
		return fmt.Errorf("%w: no unique index of %s has all its columns set%s", dbguard.ErrUnprotectable, m.table(), catalogue.Nameless(indexes))
	}
	choices := make([]string, len(fit))
	for i, columns := range fit {
		choices[i] = catalogue.Listing(columns)
	}
	return fmt.Errorf("%w: several unique indexes of %s are set, name one with Protects: %s",
		dbguard.ErrUnprotectable, m.table(), strings.Join(choices, " or "))
}

// protect adds a row, once. Where there is no snapshot that could be looked at
// after a conflict, it looks at the row now.
func (t *Tx) protect(r *protectedRow) error {
	t.mu.Lock()
	known := t.protected.has(r)
	t.mu.Unlock()
	if known {
		return nil
	}
	if err := t.ready(r); err != nil {
		return err
	}
	if other, ok := t.plugin.keys.another(r, t.key); ok {
		t.logger.Warn("rows of a table are protected by several keys: nothing excludes those who write one under another key",
			"table", r.table, "key", t.key, "other", other)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.protected.add(r)
	return nil
}

// ready makes sure that a row with new values can be identified, and found again. It
// reads the indexes now, as PostgreSQL reads nothing after an error.
func (t *Tx) ready(r *protectedRow) error {
	if !t.factsOf(r.table).Transactional {
		return fmt.Errorf("%w: the engine of table %s has no transactions", dbguard.ErrUnprotectable, r.table)
	}
	if _, err := t.uniqueIndexes(r.table); err != nil {
		return err
	}
	for i, v := range r.values {
		if sqlvalue.IsNull(v) {
			return fmt.Errorf("%w: %s.%s is NULL, as it may be in any number of rows", dbguard.ErrUnprotectable, r.table, r.fields[i].DBName)
		}
	}
	if err := t.roundTimes(r); err != nil {
		return err
	}
	return t.lookBefore(r)
}

// valuesIn returns the values that name the row, as a model has them.
func (r *protectedRow) valuesIn(ctx context.Context, model reflect.Value) []any {
	values := make([]any, len(r.fields))
	for i, f := range r.fields {
		values[i], _ = f.ValueOf(ctx, model)
	}
	return values
}

func (r *protectedRow) setValues(values []any) { r.values, r.id = values, "" }

// refresh looks again at the models that a statement is about to insert: hooks
// may have altered them since ProtectNew.
func (t *Tx) refresh(stmt *gorm.Statement) error {
	if stmt.Schema == nil {
		return nil
	}
	var altered []*protectedRow
	t.mu.Lock()
	models.Each(stmt, func(model reflect.Value) {
		p := model.Addr().Interface()
		for _, r := range t.protected.byModel[p] {
			r.model = nil // once: the struct may be used for another row
			if values := r.valuesIn(t.ctx, model); !slices.EqualFunc(r.values, values, sqlvalue.Equal) {
				t.protected.change(r, values)
				altered = append(altered, r)
			}
		}
		delete(t.protected.byModel, p)
	})
	t.mu.Unlock()
	for _, r := range altered {
		if err := t.ready(r); err != nil {
			return err
		}
	}
	return nil
}

// named reports whether Protect has named a row of the table.
func (t *Tx) named(table string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.protected.tables[table]
}

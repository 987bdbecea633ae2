package gormfront

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/conflict"
	"github.com/belaygo/belay/internal/dbtx/protected"
	"github.com/belaygo/belay/internal/dbtx/sqlvalue"
	"github.com/belaygo/belay/internal/dbtx/statement"
	"github.com/belaygo/belay/internal/gormfront/models"
	"github.com/belaygo/belay/internal/rowversion"
)

// named is a model that names a row.
type named struct {
	stmt  *gorm.Statement
	value reflect.Value
}

// Parse returns a model, a struct or a pointer to one, with its schema.
func (f *Front) Parse(ctx context.Context, model any) (protected.Named, error) {
	v := reflect.ValueOf(model)
	for v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	if v.Kind() == reflect.Pointer {
		return nil, fmt.Errorf("%w: a nil %T names no row", conflict.ErrUnprotectable, model)
	}
	if v.Kind() != reflect.Struct {
		return nil, fmt.Errorf("%w: %T is not a struct or a pointer to one", conflict.ErrUnprotectable, model)
	}
	stmt := &gorm.Statement{DB: f.db, Context: ctx, ReflectValue: v}
	if err := stmt.Parse(model); err != nil {
		return nil, errors.Join(conflict.ErrUnprotectable, err)
	}
	stmt.Dest = model
	return named{stmt, v}, nil
}

// Write implements protected.Named.
func (m named) Write() *statement.Write { return Given(m.stmt) }

// Table implements protected.Named.
func (m named) Table() string { return models.TableOf(m.stmt) }

// Primary implements protected.Named.
func (m named) Primary() []string { return m.stmt.Schema.PrimaryFieldDBNames }

// Pointer implements protected.Named.
func (m named) Pointer() any {
	if !m.value.CanAddr() {
		return nil
	}
	return m.value.Addr().Interface()
}

// Set implements protected.Named.
func (m named) Set() (columns []string) {
	for _, name := range m.stmt.Schema.DBNames {
		f := m.stmt.Schema.FieldsByDBName[name]
		if _, zero := f.ValueOf(m.stmt.Context, m.value); !zero && f.IndirectFieldType != reflect.TypeFor[rowversion.Version]() {
			columns = append(columns, name)
		}
	}
	return columns
}

// Fitting implements protected.Named.
func (m named) Fitting(indexes [][]string) [][]string {
	var set, written [][]string
	for _, columns := range indexes {
		switch zeros, ok := m.zeros(columns); {
		case !ok:
		case zeros == 0:
			set = append(set, columns)
		case zeros < len(columns):
			written = append(written, columns)
		}
	}
	if len(set) > 0 {
		return set
	}
	return written
}

// HasKey implements protected.Named.
func (m named) HasKey() bool {
	zeros, ok := m.zeros(m.Primary())
	return ok && zeros == 0
}

// zeros counts the columns that are zero. It reports false if the program does not
// write all of them: gorm fills a zero time of the creation with that of each attempt.
func (m named) zeros(columns []string) (n int, ok bool) {
	for _, name := range columns {
		f := models.Column(m.stmt.Schema, name)
		if f == nil || f.AutoIncrement || !f.Creatable {
			return 0, false
		}
		v, zero := f.ValueOf(m.stmt.Context, m.value)
		if zero {
			n++
		}
		if zero && (f.HasDefaultValue || f.AutoCreateTime > 0 || f.AutoUpdateTime > 0 || sqlvalue.IsNull(v)) {
			return 0, false
		}
	}
	return n, len(columns) > 0
}

// Row implements protected.Named. It sorts the columns: an index may have them in another order
// than the model, and both name one row.
func (m named) Row(columns []string, r protected.Row) *protected.Row {
	r.Table, r.Model = m.Table(), model{m.stmt.Schema}
	for _, name := range columns {
		r.Columns = append(r.Columns, models.Column(m.stmt.Schema, name).DBName)
	}
	slices.Sort(r.Columns)
	for _, name := range r.Columns {
		r.Values = append(r.Values, models.Value(m.stmt.Context, models.Column(m.stmt.Schema, name), m.value))
	}
	return &r
}

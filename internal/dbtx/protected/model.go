package protected

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/conflict"
	"github.com/belaygo/belay/internal/dbtx/models"
	"github.com/belaygo/belay/internal/dbtx/sqlvalue"
	"github.com/belaygo/belay/internal/rowversion"
)

// A Model is a model with its schema.
type Model struct {
	stmt  *gorm.Statement
	value reflect.Value
}

// Parse returns a model, a struct or a pointer to one, with its schema.
func Parse(ctx context.Context, db *gorm.DB, model any) (Model, error) {
	v := reflect.ValueOf(model)
	for v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	if v.Kind() == reflect.Pointer {
		return Model{}, fmt.Errorf("%w: a nil %T names no row", conflict.ErrUnprotectable, model)
	}
	if v.Kind() != reflect.Struct {
		return Model{}, fmt.Errorf("%w: %T is not a struct or a pointer to one", conflict.ErrUnprotectable, model)
	}
	stmt := &gorm.Statement{DB: db, Context: ctx, ReflectValue: v}
	if err := stmt.Parse(model); err != nil {
		return Model{}, errors.Join(conflict.ErrUnprotectable, err)
	}
	stmt.Dest = model
	return Model{stmt, v}, nil
}

// Statement returns a statement with the model.
func (m Model) Statement() *gorm.Statement { return m.stmt }

// Table returns the table of the model.
func (m Model) Table() string { return models.TableOf(m.stmt) }

// Primary returns the columns of the primary key.
func (m Model) Primary() []string { return m.stmt.Schema.PrimaryFieldDBNames }

// Pointer returns the pointer to the model, nil if it was given as a struct.
func (m Model) Pointer() any {
	if !m.value.CanAddr() {
		return nil
	}
	return m.value.Addr().Interface()
}

// Set returns the columns whose fields are not zero. A version is no part of a
// name.
func (m Model) Set() (columns []string) {
	for _, name := range m.stmt.Schema.DBNames {
		f := m.stmt.Schema.FieldsByDBName[name]
		if _, zero := f.ValueOf(m.stmt.Context, m.value); !zero && f.IndirectFieldType != reflect.TypeFor[rowversion.Version]() {
			columns = append(columns, name)
		}
	}
	return columns
}

// Fitting returns the indexes whose columns are all set in the model. If there is none,
// it returns the indexes of which some columns are set, and of which the program writes
// the others as zeros.
func (m Model) Fitting(indexes [][]string) [][]string {
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

// HasKey reports whether the model's primary key is set, by the program.
func (m Model) HasKey() bool {
	zeros, ok := m.zeros(m.Primary())
	return ok && zeros == 0
}

// zeros counts the columns that are zero. It reports false if the program does not
// write all of them: gorm fills a zero time of the creation with that of each attempt.
func (m Model) zeros(columns []string) (n int, ok bool) {
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

// Row names the row of a model by columns.
func (m Model) Row(columns []string, r Row) *Row {
	r.Table, r.Schema = m.Table(), m.stmt.Schema
	for _, name := range columns {
		r.Fields = append(r.Fields, models.Column(m.stmt.Schema, name))
	}
	r.setValues(r.valuesIn(m.stmt.Context, m.value))
	return &r
}

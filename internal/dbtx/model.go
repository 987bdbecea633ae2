package dbtx

import (
	"errors"
	"fmt"
	"reflect"

	"gorm.io/gorm"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/internal/dbtx/catalogue"
	"github.com/belaygo/belay/internal/dbtx/models"
	"github.com/belaygo/belay/internal/dbtx/sqlvalue"
)

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
		return parsedModel{}, fmt.Errorf("%w: %T is not a struct or a pointer to one", dbguard.ErrUnprotectable, model)
	}
	stmt := &gorm.Statement{DB: t.db, Context: t.ctx, ReflectValue: v}
	if err := stmt.Parse(model); err != nil {
		return parsedModel{}, errors.Join(dbguard.ErrUnprotectable, err)
	}
	return parsedModel{stmt, v}, nil
}

func (m parsedModel) table() string { return catalogue.TableOf(m.stmt) }

// set returns the columns whose fields are not zero. A version is no part of a
// name.
func (m parsedModel) set() (columns []string) {
	for _, name := range m.stmt.Schema.DBNames {
		f := m.stmt.Schema.FieldsByDBName[name]
		if _, zero := f.ValueOf(m.stmt.Context, m.value); !zero && f.IndirectFieldType != reflect.TypeFor[dbguard.Version]() {
			columns = append(columns, name)
		}
	}
	return columns
}

// fitting returns the indexes whose columns are all set in the model. If there is none,
// it returns those of which some are set and the program writes the zeros of the others.
func (m parsedModel) fitting(indexes [][]string) [][]string {
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

// zeros counts the columns that are zero. It reports false if the program does not
// write all of them.
func (m parsedModel) zeros(columns []string) (n int, ok bool) {
	for _, name := range columns {
		f := models.Column(m.stmt.Schema, name)
		if f == nil || f.AutoIncrement || !f.Creatable {
			return 0, false
		}
		v, zero := f.ValueOf(m.stmt.Context, m.value)
		if zero {
			n++
		}
		if zero && (f.HasDefaultValue || sqlvalue.IsNull(v)) {
			return 0, false
		}
	}
	return n, len(columns) > 0
}

// row names the row of a model by columns.
func (m parsedModel) row(columns []string, r protectedRow) *protectedRow {
	r.table, r.schema = m.table(), m.stmt.Schema
	for _, name := range columns {
		r.fields = append(r.fields, models.Column(m.stmt.Schema, name))
	}
	r.setValues(r.valuesIn(m.stmt.Context, m.value))
	return &r
}

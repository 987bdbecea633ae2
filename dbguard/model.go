package dbguard

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"
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
		return parsedModel{}, fmt.Errorf("%w: %T is not a struct or a pointer to one", ErrUnprotectable, model)
	}
	stmt := &gorm.Statement{DB: t.db, Context: t.ctx, ReflectValue: v}
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
	if f := m.stmt.Schema.FieldsByDBName[column]; f != nil {
		return f
	}
	for name, f := range m.stmt.Schema.FieldsByDBName {
		if strings.EqualFold(name, column) {
			return f
		}
	}
	return nil
}

// row names the row of a model by columns.
func (m parsedModel) row(columns []string, r protectedRow) *protectedRow {
	r.table, r.schema = m.stmt.Table, m.stmt.Schema
	for _, name := range columns {
		r.fields = append(r.fields, m.field(name))
	}
	r.setValues(r.valuesIn(m.stmt.Context, m.value))
	return &r
}

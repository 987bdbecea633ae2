package gormfront

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/conflict"
	"github.com/belaygo/belay/internal/dbtx/catalogue"
	"github.com/belaygo/belay/internal/dbtx/protected"
	"github.com/belaygo/belay/internal/rowversion"
	"github.com/belaygo/belay/internal/tablerow"
)

// tableRow is a row that is named by its table. Its model is a struct made for it, with the
// columns that name the row as its primary key.
type tableRow struct {
	named
	columns []string
}

// ParseRow returns a row that is named by its table. version and stamp are the columns of its
// version and its stamp, "" if it has none.
func (f *Front) ParseRow(ctx context.Context, row *tablerow.Row, version, stamp string) (protected.Named, error) {
	fields := make([]reflect.StructField, 0, len(row.Columns)+2)
	for i, column := range row.Columns {
		tag := fmt.Sprintf(`gorm:"column:%s;primaryKey;autoIncrement:false" table:"%s"`, column, row.Table)
		fields = append(fields, field(i, reflect.TypeOf(row.Values[i]), tag))
	}
	if version != "" {
		fields = append(fields, field(len(fields), reflect.TypeFor[rowversion.Version](), fmt.Sprintf(`gorm:"column:%s"`, version)))
	}
	if stamp != "" {
		fields = append(fields, field(len(fields), reflect.TypeFor[rowversion.Stamp](), fmt.Sprintf(`gorm:"column:%s"`, stamp)))
	}
	model := reflect.New(reflect.StructOf(fields))
	for i, v := range row.Values {
		model.Elem().Field(i).Set(reflect.ValueOf(v))
	}
	stmt := &gorm.Statement{DB: f.db, Context: ctx, ReflectValue: model.Elem()}
	if err := stmt.ParseWithSpecialTableName(model.Interface(), row.Table); err != nil {
		return nil, errors.Join(conflict.ErrUnprotectable, err)
	}
	stmt.Dest = model.Interface()
	return tableRow{named{stmt, model.Elem()}, row.Columns}, nil
}

// field returns the nth field of a struct that is made for a row.
func field(n int, t reflect.Type, tag string) reflect.StructField {
	return reflect.StructField{Name: fmt.Sprintf("F%d", n), Type: t, Tag: reflect.StructTag(tag)}
}

// Set implements protected.Named: a column that is 0 is one that was named.
func (m tableRow) Set() []string { return m.columns }

// HasKey implements protected.Named.
func (m tableRow) HasKey() bool { return true }

// Fitting implements protected.Named.
func (m tableRow) Fitting(indexes [][]string) (fit [][]string) {
	for _, columns := range indexes {
		if catalogue.SameColumns(columns, m.columns) {
			fit = append(fit, columns)
		}
	}
	return fit
}

// Pointer implements protected.Named: the program does not have the struct.
func (m tableRow) Pointer() any { return nil }

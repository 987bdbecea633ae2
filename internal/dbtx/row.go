package dbtx

import (
	"fmt"
	"slices"
	"strings"

	"github.com/belaygo/belay/internal/conflict"
	"github.com/belaygo/belay/internal/dbtx/protected"
	"github.com/belaygo/belay/internal/tablerow"
)

// parse returns a model, or a *tablerow.Row, as what names a row.
func (t *Tx) parse(model any) (protected.Named, error) {
	row, ok := model.(*tablerow.Row)
	if !ok {
		return t.front.Parse(t.ctx, model)
	}
	if row == nil {
		return nil, fmt.Errorf("%w: a nil Row names none", conflict.ErrUnprotectable)
	}
	if row.Err != nil {
		return nil, row.Err
	}
	if err := t.checkColumns(row); err != nil {
		return nil, err
	}
	version, err := t.versionColumn(row)
	if err != nil {
		return nil, err
	}
	stamp, err := t.stampColumn(row)
	if err != nil {
		return nil, err
	}
	return t.front.ParseRow(t.ctx, row, version, stamp)
}

// checkColumns returns an error unless the table has the columns that name the row, and compares
// them as they are.
func (t *Tx) checkColumns(row *tablerow.Row) error {
	isThere, err := t.reader.Exists(row.Table)
	switch {
	case err != nil:
		return err
	case !isThere:
		return fmt.Errorf("%w: there is no table %s: create it", conflict.ErrUnprotectable, row.Table)
	}
	for i, name := range row.Columns {
		column, err := t.reader.Column(row.Table, name)
		switch {
		case err != nil:
			return err
		case column.Name == "":
			return fmt.Errorf("%w: %s has no column %s", conflict.ErrUnprotectable, row.Table, name)
		case t.dialect.Name == "mysql" && column.Collation != "" && isNumber(row.Values[i]):
			return fmt.Errorf("%w: %s.%s has texts, which the database would compare with a number as numbers: name the row by a text",
				conflict.ErrUnprotectable, row.Table, name)
		}
	}
	return nil
}

// isNumber reports whether a driver sends a value as a number.
func isNumber(value any) bool {
	switch value.(type) {
	case int64, float64, bool:
		return true
	}
	return false
}

// versionColumn returns the column of a row's version, "" if it has none. A column that only
// has the usual name, but no integers, is none.
func (t *Tx) versionColumn(row *tablerow.Row) (string, error) {
	column, err := t.reader.Column(row.Table, row.VersionColumn())
	switch {
	case err != nil:
		return "", err
	case column.Integers(t.dialect.Name):
		return column.Name, nil
	case row.Version == "":
		return "", nil
	}
	return "", fmt.Errorf("%w: %s has no column %s of integers", conflict.ErrUnprotectable, row.Table, row.Version)
}

// stampColumn returns the column of a row's stamp, "" if it has none. The column keeps all of a
// stamp.
func (t *Tx) stampColumn(row *tablerow.Row) (string, error) {
	if row.Stamp == "" {
		return "", nil
	}
	column, err := t.reader.Column(row.Table, row.Stamp)
	if err != nil {
		return "", err
	}
	_, narrow := column.Limit(t.dialect.Name)
	names := func(other string) bool { return strings.EqualFold(other, row.Stamp) }
	if names(row.VersionColumn()) || slices.ContainsFunc(row.Columns, names) {
		return "", fmt.Errorf("%w: column %s of %s has another purpose than a stamp: add one for that", conflict.ErrUnprotectable, row.Stamp, row.Table)
	}
	if narrow || !column.Integers(t.dialect.Name) {
		return "", fmt.Errorf("%w: %s has no column %s of 64-bit integers", conflict.ErrUnprotectable, row.Table, row.Stamp)
	}
	return column.Name, nil
}

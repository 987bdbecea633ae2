// Package tablerow names a row by its table and the columns of a unique index, for programs
// that have no model of it.
package tablerow

import (
	"cmp"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/belaygo/belay/internal/conflict"
	"github.com/belaygo/belay/internal/isnil"
)

// A Row is a row of a table, named by the columns of one of its unique indexes, or a list of
// columns alone. It is not altered after New.
type Row struct {
	Table   string
	Columns []string // sorted: the order in which they were given names no other row
	Values  []any    // as a driver takes them: int64, float64, bool, []byte, string, time.Time
	Version string   // the column of its version, if it is not the usual one
	Stamp   string   // the column of its stamp, if it has one
	Err     error    // why it names no row, nil if it does
}

// usualVersion is the column of the version, unless the program names another one.
const usualVersion = "version"

// VersionColumn returns the column of the row's version, if the table has one.
func (r *Row) VersionColumn() string { return cmp.Or(r.Version, usualVersion) }

// Versioned returns the same row, whose version is in a column.
func (r *Row) Versioned(column string) *Row {
	named := r.with(column)
	named.Version = column
	return named
}

// Stamped returns the same row, whose stamp is in a column of 64-bit integers: guard.UpdateRow sets
// it to a random number with each new version. On MySQL and MariaDB it proves that a COMMIT without
// an answer took effect, as a dbguard.Stamp does.
func (r *Row) Stamped(column string) *Row {
	named := r.with(column)
	named.Stamp = column
	return named
}

// with returns a copy of the row, to which a column is added.
func (r *Row) with(column string) *Row {
	named := *r
	if !isName(column) && named.Err == nil {
		named.Err = fmt.Errorf("%w: Row of %q: %q is no name of a column", conflict.ErrUnprotectable, r.Table, column)
	}
	return &named
}

// New returns the row whose columns have the values: pairs are a name and its value, in turn.
func New(table string, pairs []any) *Row {
	r := &Row{Table: table}
	r.Err = r.fill(pairs)
	if r.Err != nil {
		r.Err = fmt.Errorf("%w: Row of %q: %w", conflict.ErrUnprotectable, table, r.Err)
	}
	return r
}

func (r *Row) fill(pairs []any) error {
	if !isName(r.Table) {
		return errors.New("it is no name of a table")
	}
	if len(pairs) == 0 || len(pairs)%2 != 0 {
		return errors.New("it wants columns and their values, in turn")
	}
	values := make(map[string]any, len(pairs)/2)
	for pair := range slices.Chunk(pairs, 2) {
		name, ok := pair[0].(string)
		if !ok || !isName(name) || strings.Contains(name, ".") {
			return fmt.Errorf("%v is no name of a column", pair[0])
		}
		if _, twice := values[name]; twice {
			return fmt.Errorf("column %s is named twice", name)
		}
		v, err := valueOf(pair[1])
		if err != nil {
			return fmt.Errorf("column %s: %w", name, err)
		}
		values[name] = v
		r.Columns = append(r.Columns, name)
	}
	slices.Sort(r.Columns)
	for _, name := range r.Columns {
		r.Values = append(r.Values, values[name])
	}
	return nil
}

// valueOf returns a value as a driver takes it.
func valueOf(v any) (any, error) {
	if isnil.Value(v) {
		return nil, errors.New("NULL names no row")
	}
	got, err := driver.DefaultParameterConverter.ConvertValue(v)
	if err == nil && got == nil {
		err = errors.New("NULL names no row")
	}
	return got, err
}

// isName reports whether a name can be written without a trick: what quotes it, or ends a
// setting, is no part of it.
func isName(name string) bool {
	return name != "" && !strings.ContainsAny(name, "\"`'[];,()\\ \t\r\n\x00") && !strings.HasPrefix(name, ".") && !strings.HasSuffix(name, ".")
}

package protected

import (
	"fmt"
	"hash/maphash"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/belaygo/belay/internal/dbtx/sqlvalue"
	"github.com/belaygo/belay/internal/dbtx/statement"
)

// A Row is a row that a held key protects, named by the columns of a unique
// index.
type Row struct {
	Key      string // that protects it; "" if it is not known
	Table    string
	Model    statement.Model
	Columns  []string // that name the row
	Values   []any
	Stored   []any  // values as the database has them, if otherwise
	id       string // identity, of these values
	Struct   any    // pointer to the struct that is to be inserted, if ProtectNew named it
	Named    bool   // by Protect
	Followed bool   // to another table
	Kept     bool   // it is not deleted before it is old, nor made again while the outcome of a COMMIT may be looked for
	Of       int    // the call that the row is of, from 1, where several share the transaction; 0 = all of them
}

// Identifying returns the columns that name the row, and those of its primary key.
func (r *Row) Identifying() []string {
	return slices.Concat(r.Columns, r.Model.Primary())
}

// named returns the values that name the row, as others have them.
func (r *Row) named(value statement.Value) []any {
	values := make([]any, len(r.Columns))
	for i, column := range r.Columns {
		values[i] = value(column)
	}
	return values
}

// isNamed reports whether these are the row's values, as others have them.
func (r *Row) isNamed(value statement.Value) bool {
	for i, column := range r.Columns {
		if !sqlvalue.Equal(r.Values[i], value(column)) {
			return false
		}
	}
	return true
}

func (r *Row) setValues(values []any) { r.Values, r.id = values, "" }

// Is reports whether a row with the given values is the row. A row with NULL in its key
// is not.
func (r *Row) Is(value statement.Value) bool {
	for i, column := range r.Columns {
		v := value(column)
		if sqlvalue.IsNull(v) {
			return false
		}
		if !sqlvalue.Equal(v, r.Values[i]) && (r.Stored == nil || !sqlvalue.Equal(v, r.Stored[i])) {
			return false
		}
	}
	return true
}

// SameShape reports whether two rows have one table and are named by the same
// columns.
func (r *Row) SameShape(k *Row) bool {
	return r.Table == k.Table && slices.Equal(r.Columns, k.Columns)
}

// Identity names a row within one process.
func (r *Row) Identity() string {
	if r.id != "" {
		return r.id
	}
	b := append(make([]byte, 0, 256), strings.ToLower(r.Table)...)
	for i, column := range r.Columns {
		text := identifying(sqlvalue.Plain(r.Values[i])) // with its length: it may have anything in it
		b = append(append(append(b, 0), column...), '=')
		b = append(append(strconv.AppendInt(b, int64(len(text)), 10), ':'), text...)
	}
	r.id = string(b)
	return r.id
}

// identifying returns a plain value as a text.
func identifying(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case time.Time:
		return v.UTC().Format(time.RFC3339Nano)
	}
	return fmt.Sprint(v)
}

// Value returns the value that names the row in a column.
func (r *Row) Value(column string) any {
	for i, own := range r.Columns {
		if own == column {
			return r.Values[i]
		}
	}
	return nil
}

// AsStored returns how the database keeps a value of the row.
func (r *Row) AsStored(column string, v any) any {
	for i, own := range r.Columns {
		if r.Stored != nil && own == column {
			return r.Stored[i]
		}
	}
	return v
}

// bucketSeed is that of all buckets.
var bucketSeed = maphash.MakeSeed()

// bucket returns one number for all values that sqlvalue.Equal treats as equal. Other
// values may have that number, too.
func bucket(table string, columns []string, values []any) uint64 {
	b := append(make([]byte, 0, 256), strings.ToLower(table)...)
	for i, column := range columns {
		b = append(append(append(b, 0), column...), '=')
		switch v := sqlvalue.Plain(values[i]).(type) {
		case time.Time: // equal to this instant in other time zones, and to its day
		case fmt.Stringer, []byte:
			b = fmt.Append(b, v)
		default:
			if k := reflect.ValueOf(v).Kind(); k != reflect.Struct && k != reflect.Pointer && k != reflect.Map && k != reflect.Interface {
				b = fmt.Append(b, v)
			}
		}
	}
	return maphash.Bytes(bucketSeed, b)
}

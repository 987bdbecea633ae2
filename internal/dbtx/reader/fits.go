package reader

import (
	"fmt"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/belaygo/belay/internal/conflict"
	"github.com/belaygo/belay/internal/dbtx/catalogue"
	"github.com/belaygo/belay/internal/dbtx/protected"
	"github.com/belaygo/belay/internal/dbtx/sqlvalue"
)

// Fits returns an error that matches ErrUnprotectable if MySQL or MariaDB would store a part of
// the row's name differently: without strict mode they cut it to the length of its column, so
// that names which differ in the rest are one row, and they may replace a 0 by a generated
// number, and an empty text by NULL. No read would find such a row by its name.
func (q *Reader) Fits(r *protected.Row) error {
	if q.Dialect.Name != "mysql" {
		return nil
	}
	for i, name := range r.Columns {
		if q.Session.EmptyIsNull && isEmpty(r.Values[i]) {
			return fmt.Errorf("%w: %s.%s is empty, in whose place the database puts NULL in its sql_mode EMPTY_STRING_IS_NULL",
				conflict.ErrUnprotectable, r.Table, name)
		}
		zero := sqlvalue.IsZero(r.Values[i])
		if q.Session.Strict && !zero {
			continue
		}
		column, err := q.Column(r.Table, name)
		switch {
		case err != nil:
			return err
		case zero && column.Numbers:
			return fmt.Errorf("%w: %s.%s is 0, in whose place the database puts a number of its own", conflict.ErrUnprotectable, r.Table, name)
		case !q.Session.Strict && isCut(column, r.Values[i]):
			return fmt.Errorf("%w: %s.%s does not hold the value, and without strict mode the database cuts it", conflict.ErrUnprotectable, r.Table, name)
		}
	}
	return nil
}

// isEmpty reports whether a value is an empty text, or no bytes.
func isEmpty(value any) bool {
	if text, ok := sqlvalue.Text(value); ok {
		return text == ""
	}
	b, ok := sqlvalue.Indirect(value).([]byte)
	return ok && len(b) == 0
}

func isCut(c catalogue.Column, value any) bool {
	if text, ok := sqlvalue.Text(value); ok {
		return c.Length != nil && int64(length(c, text)) > *c.Length
	}
	v := reflect.ValueOf(sqlvalue.Indirect(value))
	limit, limited := c.Limit("mysql")
	switch {
	case v.CanInt() && c.Unsigned && v.Int() < 0:
		return true
	case v.CanInt():
		return limited && (v.Int() > limit || v.Int() < -limit-1)
	case v.CanUint():
		return limited && v.Uint() > uint64(limit) //nolint:gosec // it is positive
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8:
		return c.Length != nil && int64(v.Len()) > *c.Length
	}
	return false
}

// length is that of a text as the column counts it.
func length(c catalogue.Column, text string) int {
	if c.Texts == "" || strings.HasSuffix(c.Kind, "text") {
		return len(text)
	}
	return utf8.RuneCountInString(text)
}

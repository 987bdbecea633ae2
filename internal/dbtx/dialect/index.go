package dialect

import (
	"errors"
	"reflect"
	"strings"

	"github.com/go-sql-driver/mysql"
)

// RefusingIndex returns the index, and its table in lower case, that the error of a duplicate names. MySQL and MariaDB
// name it at the end of the text only; MySQL puts the table before it. Without strict
// mode a value is cut off that does not fit, so the row may be another one. The table is ""
// if the error does not name it.
func (s Session) RefusingIndex(err error) (table, index string, ok bool) {
	e, ok := errors.AsType[*mysql.MySQLError](err)
	if !ok {
		table = strings.ToLower(stringField(err, "TableName", "Table"))
		index = stringField(err, "ConstraintName", "Constraint")
		return table, index, table != "" && index != ""
	}
	text, ok := strings.CutSuffix(e.Message, "'")
	if !ok || !s.Strict {
		return "", "", false
	}
	name := text[strings.LastIndexByte(text, '\'')+1:]
	table, index, ok = strings.Cut(name, ".")
	if !ok {
		return "", name, name != ""
	}
	return strings.ToLower(table), index, index != ""
}

// stringField returns the first of the named fields that the error of a PostgreSQL
// driver has: pgx and pq name them differently.
func stringField(err error, names ...string) string {
	var e interface{ SQLState() string }
	if !errors.As(err, &e) {
		return ""
	}
	v := reflect.Indirect(reflect.ValueOf(e))
	if v.Kind() != reflect.Struct {
		return ""
	}
	for _, name := range names {
		if f := v.FieldByName(name); f.IsValid() && f.Kind() == reflect.String {
			return f.String()
		}
	}
	return ""
}

package dialect

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-sql-driver/mysql"

	"github.com/belaygo/belay/internal/dbtx/sqlvalue"
)

// longestEntry is how much of a refused value the error of MySQL has for certain: it cuts off
// what is behind.
const longestEntry = 60

// Shown returns a value as the error of a duplicate shows it. It reports false if that is not
// certain.
func (d Dialect) Shown(v any) (string, bool) {
	switch v := sqlvalue.Indirect(v).(type) {
	case string:
		return v, true
	case bool:
		return map[bool]string{true: "t", false: "f"}[v], d.Name == "postgres"
	default:
		return fmt.Sprint(sqlvalue.Plain(v)), sqlvalue.IsPlainInteger(v)
	}
}

// Refuses reports whether the error of a duplicate names these values of an index' columns,
// as texts. PostgreSQL names columns and values in the error's detail, MySQL and MariaDB the
// values in its text. It reports false if that is not certain.
func (s Session) Refuses(err error, columns, values []string) bool {
	e, ok := errors.AsType[*mysql.MySQLError](err)
	several := len(values) > 1
	if !ok {
		if several && slices.ContainsFunc(values, func(v string) bool { return strings.Contains(v, ", ") }) {
			return false // it has the same between the values
		}
		detail := stringField(err, "Detail")
		rest, ok := strings.CutPrefix(detail[max(0, strings.IndexByte(detail, '(')):],
			"("+strings.Join(columns, ", ")+")=("+strings.Join(values, ", ")+")")
		return ok && !strings.Contains(rest, ")") // or the value goes on
	}
	if several && slices.ContainsFunc(values, func(v string) bool { return strings.Contains(v, "-") }) {
		return false // it has a dash between the values, too
	}
	entry := strings.Join(values, "-")
	_, rest, found := strings.Cut(e.Message, "'")
	rest, ok = strings.CutPrefix(rest, entry+"'")
	return found && ok && len(entry) < longestEntry && strings.Count(rest, "'") == 2 // around the index
}

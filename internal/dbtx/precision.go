package dbtx

import (
	"strings"
	"time"

	"github.com/belaygo/belay/internal/dbtx/sqlvalue"
)

// roundTimes finds out how the database stores the times in a row's key: with
// the digits that their columns have, cut off on MariaDB and else rounded, or as
// days. By others it would not be found again.
func (t *Tx) roundTimes(r *protectedRow) error {
	r.stored = nil
	for i, v := range r.values {
		at, ok := sqlvalue.Indirect(v).(time.Time)
		if !ok || t.dialect.Name == "sqlite" {
			continue
		}
		column, err := t.columnOf(r.table, r.fields[i].DBName)
		if err != nil {
			return err
		}
		if r.stored == nil {
			r.stored = append([]any(nil), r.values...)
		}
		unit := column.Unit()
		switch {
		case strings.EqualFold(column.Kind, "date"):
			r.stored[i] = sqlvalue.Day{Time: at, MySQL: t.dialect.Name == "mysql"}
		case t.conn.session.MariaDB:
			r.stored[i] = at.Truncate(unit)
		case t.dialect.Name == "postgres": // its driver sends no more than microseconds
			r.stored[i] = at.Truncate(time.Microsecond).Round(unit)
		default:
			r.stored[i] = at.Round(unit)
		}
	}
	return nil
}

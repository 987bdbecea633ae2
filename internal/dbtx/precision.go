package dbtx

import (
	"strings"
	"time"

	"github.com/belaygo/belay/internal/dbtx/protected"
	"github.com/belaygo/belay/internal/dbtx/sqlvalue"
)

// roundTimes finds out how the database stores the times in a row's key: with
// the digits that their columns have, cut off on MariaDB and else rounded, or as
// days. By others it would not be found again.
func (t *Tx) roundTimes(r *protected.Row) error {
	r.Stored = nil
	for i, v := range r.Values {
		at, ok := sqlvalue.Indirect(v).(time.Time)
		if !ok || t.dialect.Name == "sqlite" {
			continue
		}
		column, err := t.columnOf(r.Table, r.Fields[i].DBName)
		if err != nil {
			return err
		}
		if r.Stored == nil {
			r.Stored = append([]any(nil), r.Values...)
		}
		unit := column.Unit()
		switch {
		case strings.EqualFold(column.Kind, "date"):
			r.Stored[i] = sqlvalue.Day{Time: at, MySQL: t.dialect.Name == "mysql"}
		case t.conn.session.MariaDB:
			r.Stored[i] = at.Truncate(unit)
		case t.dialect.Name == "postgres": // its driver sends no more than microseconds
			r.Stored[i] = at.Truncate(time.Microsecond).Round(unit)
		default:
			r.Stored[i] = at.Round(unit)
		}
	}
	return nil
}

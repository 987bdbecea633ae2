package dbguard

import (
	"strings"
	"time"

	"gorm.io/gorm/clause"
)

// roundTimes finds out how the database stores the times in a row's key: with
// the digits that their columns have, cut off on MariaDB and else rounded, or as
// days. By others it would not be found again.
func (t *Tx) roundTimes(r *protectedRow) error {
	r.stored = nil
	for i, v := range r.values {
		at, ok := indirect(v).(time.Time)
		if !ok || t.dialect.name == "sqlite" {
			continue
		}
		column, err := t.columnOf(r.table, r.fields[i].DBName)
		if err != nil {
			return err
		}
		if r.stored == nil {
			r.stored = append([]any(nil), r.values...)
		}
		unit := column.unit()
		switch {
		case strings.EqualFold(column.Kind, "date"):
			r.stored[i] = day{at, t.dialect.name == "mysql"}
		case t.conn.session.mariaDB:
			r.stored[i] = at.Truncate(unit)
		case t.dialect.name == "postgres": // its driver sends no more than microseconds
			r.stored[i] = at.Truncate(time.Microsecond).Round(unit)
		default:
			r.stored[i] = at.Round(unit)
		}
	}
	return nil
}

// day is a time in a DATE column. The server decides which day it is: that depends on
// the driver's time zone, and on how the server rounds.
type day struct {
	time.Time
	mysql bool
}

// Build implements clause.Expression. MySQL rounds a time that it stores to the
// second first, but not one that it casts.
func (d day) Build(b clause.Builder) {
	before, behind := "CAST(", " AS DATE)"
	if d.mysql {
		before, behind = "CAST(CAST(", " AS DATETIME) AS DATE)"
	}
	_, _ = b.WriteString(before)
	b.AddVar(b, d.Time)
	_, _ = b.WriteString(behind)
}

// is reports whether a time that was read from the column is that day.
func (d day) is(t time.Time) bool {
	return t.Format(time.DateOnly) == d.In(t.Location()).Format(time.DateOnly)
}

// unit returns what a time is rounded to that is put into the column.
func (c column) unit() time.Duration {
	digits := 6
	if c.Digits != nil {
		digits = *c.Digits
	}
	unit := time.Second
	for range digits {
		unit /= 10
	}
	return unit
}

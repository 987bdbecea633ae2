package sqlvalue

import (
	"time"

	"gorm.io/gorm/clause"
)

// A Day is a time in a DATE column. The server decides which day it is: that depends on
// the driver's time zone, and on how the server rounds.
type Day struct {
	time.Time
	MySQL bool // it is a column of MySQL or MariaDB
}

// Build implements clause.Expression. MySQL rounds a time that it stores to the
// second first, but not one that it casts.
func (d Day) Build(b clause.Builder) {
	before, behind := "CAST(", " AS DATE)"
	if d.MySQL {
		before, behind = "CAST(CAST(", " AS DATETIME) AS DATE)"
	}
	_, _ = b.WriteString(before)
	b.AddVar(b, d.Time)
	_, _ = b.WriteString(behind)
}

// is reports whether a time that was read from the column is that day.
func (d Day) is(t time.Time) bool {
	return t.Format(time.DateOnly) == d.In(t.Location()).Format(time.DateOnly)
}

package sqlvalue

import "time"

// A Day is a time in a DATE column. The server decides which day it is: that depends on
// the driver's time zone, and on how the server rounds.
type Day struct {
	time.Time
	MySQL bool // it is a column of MySQL or MariaDB
}

// is reports whether a time that was read from the column is that day.
func (d Day) is(t time.Time) bool {
	return t.Format(time.DateOnly) == d.In(t.Location()).Format(time.DateOnly)
}

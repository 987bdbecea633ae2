package sqldb

import (
	"fmt"
	"strconv"
	"time"
)

// Now is an expression for the database's time, an integer in units since 1970. The clocks of
// processes that share a table may differ. Processes that share an SQLite file have their host's
// clock. SQLite reads only milliseconds from it: in a finer unit, Now is a number, the host's time
// at the call.
func (d Dialect) Now(unit time.Duration) string { return d.now(unit) }

// mysqlNow does not use UNIX_TIMESTAMP, which jumps with daylight saving time.
func mysqlNow(unit time.Duration) string {
	const micros = "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))"
	if unit == time.Microsecond {
		return micros
	}
	return fmt.Sprintf("(%s DIV %d)", micros, unit/time.Microsecond)
}

func postgresNow(unit time.Duration) string {
	return fmt.Sprintf("CAST(EXTRACT(EPOCH FROM clock_timestamp()) * %d AS BIGINT)", time.Second/unit)
}

func sqliteNow(unit time.Duration) string {
	if unit < time.Millisecond {
		return strconv.FormatInt(time.Now().UnixNano()/int64(unit), 10)
	}
	return fmt.Sprintf("CAST((julianday('now') - 2440587.5) * %d AS INTEGER)", 24*time.Hour/unit)
}

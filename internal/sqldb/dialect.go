package sqldb

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// A Dialect has the differences between databases that matter to Belay's own statements.
type Dialect struct {
	// Name is the database's name in gorm, and that of its file in a folder of schemas.
	Name string
	// Returning is set if a statement can return the rows that it has changed.
	Returning bool
	// SkipLocked ends a SELECT that locks its rows and skips those that are locked. It is empty
	// where rows are not locked one by one.
	SkipLocked string
	// Standby is set if a row that others can see may still wait for a standby: see package pgsync.
	Standby bool

	// transacts is set if statements need a transaction to be committed.
	transacts bool
	// numbered is set if parameters are $1, $2 instead of ?.
	numbered bool
	// quote encloses a name.
	quote string
	// ignore and epoch are the formats of Ignore and Epoch.
	ignore, epoch string
	now           func(unit time.Duration) string
}

// Of returns the dialect of a database by its name in gorm. It reports false if Belay does not
// know it.
func Of(name string) (Dialect, bool) {
	for _, d := range []Dialect{mysql, postgres, sqlite} {
		if d.Name == name {
			return d, true
		}
	}
	return Dialect{}, false
}

var (
	mysql = Dialect{ // and MariaDB
		Name:       "mysql",
		SkipLocked: "FOR UPDATE SKIP LOCKED",
		transacts:  true,
		quote:      "`",
		ignore:     "ON DUPLICATE KEY UPDATE %[1]s = %[1]s",
		epoch:      "UNIX_TIMESTAMP(%s)",
		now:        mysqlNow,
	}
	postgres = Dialect{
		Name:       "postgres",
		Returning:  true,
		SkipLocked: "FOR UPDATE SKIP LOCKED",
		Standby:    true,
		numbered:   true,
		quote:      `"`,
		ignore:     "ON CONFLICT (%s) DO NOTHING",
		epoch:      "EXTRACT(EPOCH FROM %s)",
		now:        postgresNow,
	}
	sqlite = Dialect{
		Name:      "sqlite",
		Returning: true,
		quote:     `"`,
		ignore:    "ON CONFLICT (%s) DO NOTHING",
		epoch:     "(julianday(%s) - 2440587.5) * 86400.0",
		now:       sqliteNow,
	}
)

// Rebind spells the parameters of a statement, ?, and the quotes of its names, ", as the database
// does. A name is quoted if it is a word of SQL to some database: in its mode ORACLE, MariaDB
// knows BODY.
func (d Dialect) Rebind(statement string) string {
	if d.quote == "`" {
		statement = strings.ReplaceAll(statement, `"`, d.quote)
	}
	if !d.numbered {
		return statement
	}
	parts := strings.Split(statement, "?")
	for n := range parts[1:] {
		parts[n] += "$" + strconv.Itoa(n+1)
	}
	return strings.Join(parts, "")
}

// Epoch is an expression for the time in a column, in seconds since 1970.
func (d Dialect) Epoch(column string) string { return fmt.Sprintf(d.epoch, column) }

// Ignore ends an INSERT that leaves alone a row with the same value in a unique column, whatever
// settings the connection has.
func (d Dialect) Ignore(column string) string { return fmt.Sprintf(d.ignore, column) }

// List repeats what n times, with sep between.
func List(what, sep string, n int) string {
	return strings.TrimSuffix(strings.Repeat(what+sep, n), sep)
}

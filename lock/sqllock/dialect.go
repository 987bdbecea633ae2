package sqllock

import (
	_ "embed"
	"strconv"
	"strings"
)

// A Dialect is a kind of database, by the name that GORM has for it.
type Dialect string

// The databases that can keep locks.
const (
	MySQL    Dialect = "mysql" // and MariaDB
	Postgres Dialect = "postgres"
	SQLite   Dialect = "sqlite" // from version 3.35
)

var (
	//go:embed schema/mysql.sql
	mysqlSchema string
	//go:embed schema/postgres.sql
	postgresSchema string
	//go:embed schema/sqlite.sql
	sqliteSchema string
)

// mysqlNow is the time in microseconds. It does not use UNIX_TIMESTAMP, which jumps with daylight
// saving time. Without autocommit its value is out of range, error 1690, so that each statement
// fails: otherwise its transaction would stay open, and others would not see what it has written.
const mysqlNow = "(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + 9223372036854775807 * (1 - CAST(@@autocommit AS SIGNED)))"

// isFree is a row that nobody has. A clock that is set back keeps no row that was released.
const isFree = "(belay_lock.until_us <= {now} OR belay_lock.owner = {nobody})"

const (
	insert = "INSERT INTO belay_lock (name, owner, token, until_us) VALUES (?, ?, "

	// Rows are returned by databases that can, so that one statement decides and tells.
	upsert = insert + `{now} * 1024, {now} + ?)` + takeOver + `
RETURNING token`

	// MySQL tells the token as the insert id, and 0 if another owner has the row. The
	// condition is true, or false, for each of the assignments: whether one sees those
	// before it or, in the SQL mode SIMULTANEOUS_ASSIGNMENT of MariaDB, does not.
	mysqlUpsert = insert + `LAST_INSERT_ID({now} * 1024), {now} + ?)
ON DUPLICATE KEY UPDATE
	token = IF(` + isFree + ` OR owner = ?, LAST_INSERT_ID(GREATEST(token + 1024, {now} * 1024)), token + LAST_INSERT_ID(0)),
	owner = IF(` + isFree + ` OR owner = ?, ?, owner),
	until_us = IF(` + isFree + ` OR owner = ?, {now} + ?, until_us)`

	// takeOver ends an insert of many rows: it acquires those that nobody else has.
	takeOver = `
ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, until_us = excluded.until_us,
	token = {greatest}(belay_lock.token + 1024, {now} * 1024)
WHERE ` + isFree + ` OR belay_lock.owner = excluded.owner`
	mysqlTakeOver = `
ON DUPLICATE KEY UPDATE
	token = IF(` + isFree + ` OR owner = VALUES(owner), GREATEST(token + 1024, {now} * 1024), token),
	owner = IF(` + isFree + ` OR (owner = VALUES(owner)), VALUES(owner), owner),
	until_us = IF(` + isFree + ` OR owner = VALUES(owner), VALUES(until_us), until_us)`

	mark      = "INSERT INTO belay_done (name, until_us) VALUES (?, {now} + ?) ON CONFLICT (name) DO UPDATE SET until_us = excluded.until_us"
	mysqlMark = "INSERT INTO belay_done (name, until_us) VALUES (?, {now} + ?) ON DUPLICATE KEY UPDATE until_us = {now} + ?"
)

// A dialect has what differs between databases.
type dialect struct {
	schema string
	// now is the database's clock, in microseconds since 1970: those of the processes that
	// share the table may differ. All on one SQLite have one clock, that of their host: it
	// is given as a number, as SQLite knows milliseconds only.
	now      string
	greatest string
	// nobody is the owner of a lock that was released.
	nobody        string
	acquire, mark string
	takeOver      string
	readOnly      string // not 0 where a server takes no writes
	// byName has an update of several rows look for them by their names. MySQL may read, and
	// lock, all rows otherwise.
	byName string
	// returning: a statement can tell which rows it has changed.
	returning bool
	// numbered: parameters are $1, $2 instead of ?.
	numbered bool
}

var dialects = map[Dialect]dialect{
	MySQL: {
		schema:   mysqlSchema,
		now:      mysqlNow,
		nobody:   "x''", // in the SQL mode EMPTY_STRING_IS_NULL of MariaDB, '' is NULL
		acquire:  mysqlUpsert,
		takeOver: mysqlTakeOver,
		readOnly: "@@global.read_only OR @@global.innodb_read_only",
		mark:     mysqlMark,
		greatest: "GREATEST",
		byName:   " FORCE INDEX (PRIMARY)",
	},
	Postgres: {
		schema:    postgresSchema,
		nobody:    "''",
		now:       "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS BIGINT)",
		greatest:  "GREATEST",
		acquire:   upsert,
		takeOver:  takeOver,
		readOnly:  "CAST(pg_is_in_recovery() AS INTEGER)",
		mark:      mark,
		returning: true,
		numbered:  true,
	},
	SQLite: {
		schema:    sqliteSchema,
		nobody:    "''",
		greatest:  "MAX",
		acquire:   upsert,
		takeOver:  takeOver,
		readOnly:  "0",
		mark:      mark,
		returning: true,
	},
}

// sql completes a statement: {now} and the others are those of the dialect.
func (d dialect) sql(statement string, hostNow int64) string {
	now := d.now
	if now == "" {
		now = strconv.FormatInt(hostNow, 10)
	}
	statement = strings.NewReplacer("{now}", now, "{greatest}", d.greatest, "{nobody}", d.nobody, "{byName}", d.byName).Replace(statement)
	if !d.numbered {
		return statement
	}
	parts := strings.Split(statement, "?")
	for n := range parts[1:] {
		parts[n] += "$" + strconv.Itoa(n+1)
	}
	return strings.Join(parts, "")
}

// list returns n times what, with sep between.
func list(what, sep string, n int) string {
	return strings.TrimSuffix(strings.Repeat(what+sep, n), sep)
}

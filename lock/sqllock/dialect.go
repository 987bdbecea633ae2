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
// fails: otherwise its transaction would stay open, and others would not see its writes.
const mysqlNow = "(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + 9223372036854775807 * (1 - CAST(@@autocommit AS SIGNED)))"

// isFree is the condition of a row without an owner. A released row is free even if the
// clock is set back.
const isFree = "(belay_lock.until_us <= {now} OR belay_lock.owner = {nobody})"

const (
	insert = "INSERT INTO belay_lock (name, owner, token, until_us) VALUES (?, ?, "

	// A database that can returns the row, so that one statement decides and reports.
	upsert = insert + `{now} * 1024, {now} + ?)` + takeOver + `
RETURNING token`

	// MySQL returns the token as the insert id, and 0 if another owner has the row. The
	// condition has one value in all assignments, whether an assignment sees those
	// before it or, in MariaDB's SQL mode SIMULTANEOUS_ASSIGNMENT, does not.
	mysqlUpsert = insert + `LAST_INSERT_ID({now} * 1024), {now} + ?)
ON DUPLICATE KEY UPDATE
	token = IF(` + isFree + ` OR owner = ?, LAST_INSERT_ID(GREATEST(token + 1024, {now} * 1024)), token + LAST_INSERT_ID(0)),
	owner = IF(` + isFree + ` OR owner = ?, ?, owner),
	until_us = IF(` + isFree + ` OR owner = ?, {now} + ?, until_us)`

	// takeOver ends an insert of many rows: it acquires those that no other owner has.
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

// mysqlUnkeyed counts the tables that accept two owners' rows for one name. Databases whose upserts
// name the column refuse such tables. {now} raises the error without autocommit.
const mysqlUnkeyed = `SELECT COUNT(*) FROM information_schema.tables t
WHERE t.table_schema = DATABASE() AND t.table_name IN ('belay_lock', 'belay_done') AND {now} > 0 AND COALESCE((
	SELECT GROUP_CONCAT(IF(s.sub_part IS NULL, s.column_name, 'part')) FROM information_schema.statistics s
	WHERE s.table_schema = t.table_schema AND s.table_name = t.table_name AND s.index_name = 'PRIMARY'), 'none') <> 'name'`

// A dialect has the differences of a database.
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
	unkeyed       string // counts the tables without their primary keys, if no acquire would fail there
	readOnly      string // not 0 where a server takes no writes
	// byName makes an update of several rows find them by their names. Without it MySQL may
	// read, and lock, all rows.
	byName string
	// returning is set if a statement can return the rows that it has changed.
	returning bool
	// numbered is set if parameters are $1, $2 instead of ?.
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
		unkeyed:  mysqlUnkeyed,
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

// list repeats what n times, with sep between.
func list(what, sep string, n int) string {
	return strings.TrimSuffix(strings.Repeat(what+sep, n), sep)
}

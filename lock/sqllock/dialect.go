package sqllock

import (
	"embed"
	"fmt"
	"strings"
	"time"

	"github.com/belaygo/belay/internal/sqldb"
)

// A Dialect is a kind of database, by the name that GORM has for it.
type Dialect string

// The databases that can keep locks.
const (
	MySQL    Dialect = "mysql" // and MariaDB
	Postgres Dialect = "postgres"
	SQLite   Dialect = "sqlite" // from version 3.35
)

//go:embed schema
var schemas embed.FS

// autocommitCheck adds 0 with autocommit. Without it the sum is out of range, error 1690, so that
// each statement fails: otherwise its transaction would stay open, and others would not see its
// writes.
const autocommitCheck = " + 9223372036854775807 * (1 - CAST(@@autocommit AS SIGNED))"

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
	sqldb.Dialect

	check    string // is added to the time: it makes a statement fail, or adds nothing
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
}

var dialects = map[Dialect]dialect{
	MySQL: {
		check:    autocommitCheck,
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
		nobody:   "''",
		greatest: "GREATEST",
		acquire:  upsert,
		takeOver: takeOver,
		readOnly: "CAST(pg_is_in_recovery() AS INTEGER)",
		mark:     mark,
	},
	SQLite: {
		nobody:   "''",
		greatest: "MAX",
		acquire:  upsert,
		takeOver: takeOver,
		readOnly: "0",
		mark:     mark,
	},
}

func dialectOf(d Dialect) (dialect, error) {
	known, ok := dialects[d]
	if !ok {
		return dialect{}, fmt.Errorf("sqllock: dialect is %q; locks are kept in %s, %s and %s", d, MySQL, Postgres, SQLite)
	}
	known.Dialect, _ = sqldb.Of(string(d))
	return known, nil
}

// sql completes a statement: {now} is the database's time in microseconds, and the others are
// those of the dialect.
func (d dialect) sql(statement string) string {
	now := "(" + d.Now(time.Microsecond) + d.check + ")"
	return d.Rebind(strings.NewReplacer("{now}", now, "{greatest}", d.greatest, "{nobody}", d.nobody, "{byName}", d.byName).Replace(statement))
}

package outbox

import (
	_ "embed"
	"strconv"
	"strings"

	"github.com/belaygo/belay/internal/pgsync"
)

var (
	//go:embed schema/mysql.sql
	mysqlSchema string
	//go:embed schema/postgres.sql
	postgresSchema string
	//go:embed schema/sqlite.sql
	sqliteSchema string
)

// A dialect has what differs between databases.
type dialect struct {
	schema string
	// ignore makes an insert leave alone an id that is there already, whichever
	// settings the connection has.
	ignore string
	// barrier is a statement whose end says that all commits before it are as safe as one
	// can be; empty if a row that is seen is.
	barrier string
	// body is the column of that name, which is a word of SQL in MariaDB's mode ORACLE.
	body string
	// now is the database's clock in milliseconds since 1970: the clocks of the
	// processes that share the table may differ.
	now string
	// created is created_at in seconds since 1970.
	created string
	// lock follows the selection of rows to lease, where rows are locked one by
	// one. Only the relay uses it.
	lock string
	// returning: an UPDATE can tell which rows it has changed.
	returning bool
	// numbered: parameters are $1, $2 instead of ?.
	numbered bool
}

var dialects = map[string]dialect{
	"mysql": {
		schema:  mysqlSchema,
		ignore:  "ON DUPLICATE KEY UPDATE event_id = event_id",
		body:    "`body`",
		now:     "(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) DIV 1000)",
		created: "UNIX_TIMESTAMP(created_at)",
		lock:    "FOR UPDATE SKIP LOCKED",
	},
	"postgres": {
		schema:    postgresSchema,
		ignore:    "ON CONFLICT (event_id) DO NOTHING",
		body:      "body",
		barrier:   pgsync.Message,
		now:       "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)",
		created:   "EXTRACT(EPOCH FROM created_at)",
		lock:      "FOR UPDATE SKIP LOCKED",
		returning: true,
		numbered:  true,
	},
	"sqlite": {
		schema:    sqliteSchema,
		ignore:    "ON CONFLICT (event_id) DO NOTHING",
		body:      "body",
		now:       "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)",
		created:   "(julianday(created_at) - 2440587.5) * 86400.0",
		returning: true,
	},
}

// sql completes a statement: {now}, {created}, {body} and {ignore} are those of the
// dialect.
func (d dialect) sql(statement string) string {
	statement = strings.NewReplacer("{now}", d.now, "{created}", d.created, "{body}", d.body, "{ignore}", d.ignore).Replace(statement)
	if !d.numbered {
		return statement
	}
	parts := strings.Split(statement, "?")
	for n := range parts[1:] {
		parts[n] += "$" + strconv.Itoa(n+1)
	}
	return strings.Join(parts, "")
}

// list returns n times what, with commas between.
func list(what string, n int) string {
	return strings.TrimSuffix(strings.Repeat(what+", ", n), ", ")
}

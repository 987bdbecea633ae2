package once

import (
	"context"
	"embed"
	"errors"
	"fmt"

	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/claim"
	"github.com/belaygo/belay/internal/dbtx/catalogue"
	"github.com/belaygo/belay/internal/sqldb"
)

//go:embed schema
var schemas embed.FS

// A dialect has what else differs between databases.
type dialect struct {
	// older is the condition that a row is older than so many seconds, by the database's clock.
	// On MySQL no index serves it: rows are deleted by their primary key.
	older string
	// age is how many seconds old the oldest row is, of those that aging names.
	age string
}

// olderMySQL compares seconds since 1970: in a time zone with summer time, the clock of a session
// is put forward by an hour, and back. It cannot use an index.
const olderMySQL = "UNIX_TIMESTAMP(created_at) < UNIX_TIMESTAMP() - ?"

var dialects = map[string]dialect{
	"mysql": {
		older: olderMySQL,
		age:   "SELECT UNIX_TIMESTAMP() - FLOOR(UNIX_TIMESTAMP(created_at)) FROM %s ORDER BY created_at LIMIT 1",
	},
	"postgres": {
		older: "created_at < clock_timestamp() - make_interval(secs => ?)",
		age:   "SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp() - created_at) AS BIGINT) FROM %s ORDER BY created_at LIMIT 1",
	},
	"sqlite": {
		older: "created_at < strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-' || ? || ' seconds')",
		age:   "SELECT CAST((julianday('now') - julianday(created_at)) * 86400 AS INTEGER) FROM %s ORDER BY created_at LIMIT 1",
	},
}

// aging returns the rows of a table that are deleted for their own age. An answer that refuses is
// not: without it the claim would tell a repeat that the request has taken effect.
func aging(table string) string {
	if table == "belay_answer" {
		return table + " WHERE refused = 0"
	}
	return table
}

// tables are belay_once and belay_answer in one database.
type tables struct {
	db sqldb.DB
	dialect
}

func open(db *gorm.DB) (tables, error) {
	if db == nil || db.Config == nil || db.Dialector == nil {
		return tables{}, errors.New("once: db is missing")
	}
	d, ok := sqldb.Of(db.Name())
	if !ok {
		return tables{}, fmt.Errorf("once: db is %q; the tables work on mysql, postgres and sqlite", db.Name())
	}
	pool, err := db.DB()
	if err != nil {
		return tables{}, fmt.Errorf("once: db has no connection pool: %w", err)
	}
	return tables{sqldb.New(pool, d), dialects[d.Name]}, nil
}

// Migrate creates the tables belay_once and belay_answer if they do not exist. The
// statements are in the folder schema, for other tools of migration.
func Migrate(ctx context.Context, db *gorm.DB) error {
	t, err := open(db)
	if err != nil {
		return err
	}
	if err := t.db.Migrate(ctx, t.db.Schema(schemas)); err != nil {
		return fmt.Errorf("once: create tables: %w", err)
	}
	return nil
}

// Check returns an error unless the tables are there, with all their columns, can be read,
// and keep the rows of a request apart from those of all others: each needs a unique index
// on request alone, and an engine with transactions.
func Check(ctx context.Context, db *gorm.DB) error {
	t, err := open(db)
	if err != nil {
		return err
	}
	for _, query := range []string{
		"SELECT request, attempt, print, held, operation, created_at FROM belay_once WHERE 1 = 0",
		"SELECT a.request, a.refused, a.codec, a.body, a.created_at FROM belay_answer a WHERE 1 = 0",
	} {
		if err := t.db.Query(ctx, query, nil, func(sqldb.Scan) error { return nil }); err != nil {
			return fmt.Errorf("once: check tables: %w", claim.Explain(err))
		}
	}
	db = db.Session(&gorm.Session{NewDB: true, Context: ctx})
	return errors.Join(checkTable(db, "belay_once"), checkTable(db, "belay_answer"))
}

// checkTable checks a table in a transaction: without autocommit MySQL would leave one open behind
// the reads of its catalogue.
func checkTable(db *gorm.DB, table string) error {
	return db.Transaction(func(tx *gorm.DB) error { return hasItsKey(tx, table) })
}

// hasItsKey returns an error unless the database refuses a second row of a request, and
// takes the first one back at a rollback.
func hasItsKey(db *gorm.DB, table string) error {
	in := catalogue.Source{Dialect: db.Name(), Conn: db.Statement.ConnPool}
	indexes, err := in.Indexes(db.Statement.Context, table)
	if err != nil {
		return fmt.Errorf("once: check tables: %w", err)
	}
	if !catalogue.IsUnique(indexes, []string{"request"}) {
		return fmt.Errorf("once: table %s has no unique index on (request) alone%s, so a request may take effect twice: make it the primary key", table, catalogue.Unusable(indexes))
	}
	facts, err := in.Facts(db.Statement.Context, table)
	if err != nil {
		return fmt.Errorf("once: check tables: %w", err)
	}
	if !facts.Transactional {
		return fmt.Errorf("once: the engine of table %s has no transactions: ALTER TABLE %s ENGINE = InnoDB", table, table)
	}
	return nil
}

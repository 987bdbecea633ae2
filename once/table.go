package once

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"strings"

	"gorm.io/gorm"
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
	// old are the oldest requests in a table that are older than so many seconds, at
	// most so many. The clock is the database's.
	old string
	// older says that a row is older than so many seconds. On MySQL no index serves it: rows
	// are deleted by their primary key.
	older string
	// age is how many seconds old the oldest row of a table is.
	age string
	// mark is the n-th parameter.
	mark func(n int) string
	// deletes is the isolation at which rows are deleted. At REPEATABLE READ InnoDB would
	// lock the gaps of those that another purger has deleted.
	deletes sql.IsolationLevel
}

var dialects = map[string]dialect{
	"mysql": {
		deletes: sql.LevelReadCommitted,
		schema:  mysqlSchema,
		old:     "SELECT request FROM %s WHERE created_at < CURRENT_TIMESTAMP(6) - INTERVAL ? SECOND ORDER BY created_at LIMIT ?",
		older:   "created_at + INTERVAL ? SECOND < CURRENT_TIMESTAMP(6)",
		age:     "SELECT TIMESTAMPDIFF(SECOND, created_at, CURRENT_TIMESTAMP(6)) FROM %s ORDER BY created_at LIMIT 1",
		mark:    func(int) string { return "?" },
	},
	"postgres": {
		schema: postgresSchema,
		old:    "SELECT request FROM %s WHERE created_at < clock_timestamp() - make_interval(secs => $1) ORDER BY created_at LIMIT $2",
		older:  "created_at < clock_timestamp() - make_interval(secs => $1)",
		age:    "SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp() - created_at) AS BIGINT) FROM %s ORDER BY created_at LIMIT 1",
		mark:   func(n int) string { return fmt.Sprintf("$%d", n) },
	},
	"sqlite": {
		schema: sqliteSchema,
		old:    "SELECT request FROM %s WHERE created_at < strftime('%%Y-%%m-%%dT%%H:%%M:%%fZ', 'now', '-' || ? || ' seconds') ORDER BY created_at LIMIT ?",
		older:  "created_at < strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-' || ? || ' seconds')",
		age:    "SELECT CAST((julianday('now') - julianday(created_at)) * 86400 AS INTEGER) FROM %s ORDER BY created_at LIMIT 1",
		mark:   func(int) string { return "?" },
	},
}

// tables are belay_once and belay_answer in one database.
type tables struct {
	pool *sql.DB
	dialect
}

func open(db *gorm.DB) (tables, error) {
	if db == nil || db.Config == nil || db.Dialector == nil {
		return tables{}, errors.New("once: db is missing")
	}
	d, ok := dialects[db.Name()]
	if !ok {
		return tables{}, fmt.Errorf("once: db is %q; the tables work on mysql, postgres and sqlite", db.Name())
	}
	pool, err := db.DB()
	if err != nil {
		return tables{}, fmt.Errorf("once: db has no connection pool: %w", err)
	}
	return tables{pool, d}, nil
}

// Migrate creates the tables belay_once and belay_answer if they are not there. The
// statements are in the folder schema, for those who run migrations by other means.
func Migrate(ctx context.Context, db *gorm.DB) error {
	t, err := open(db)
	if err != nil {
		return err
	}
	for statement := range strings.SplitSeq(t.schema, ";\n") {
		if _, err = t.pool.ExecContext(ctx, statement); err != nil && ctx.Err() == nil {
			// On PostgreSQL two processes that create it at once disturb each other.
			_, err = t.pool.ExecContext(ctx, statement)
		}
		if err != nil {
			return fmt.Errorf("once: create tables: %w", err)
		}
	}
	return nil
}

// Check returns an error unless the tables are there, with all their columns, and can be
// read.
func Check(ctx context.Context, db *gorm.DB) error {
	t, err := open(db)
	if err != nil {
		return err
	}
	for _, query := range []string{
		"SELECT request, attempt, print, held, operation, created_at FROM belay_once WHERE 1 = 0",
		"SELECT request, refused, codec, body, created_at FROM belay_answer WHERE 1 = 0",
	} {
		if _, err := t.pool.ExecContext(ctx, query); err != nil {
			return fmt.Errorf("once: check tables: %w", err)
		}
	}
	return nil
}

// exec deletes, in a transaction of its own, and returns how many rows it has deleted.
func (t tables) exec(ctx context.Context, query string, args ...any) (int64, error) {
	tx, err := t.pool.BeginTx(ctx, &sql.TxOptions{Isolation: t.deletes})
	if err != nil {
		return 0, err
	}
	res, err := tx.ExecContext(ctx, query, args...)
	if err != nil {
		return 0, errors.Join(err, tx.Rollback())
	}
	n, err := res.RowsAffected()
	return n, errors.Join(err, tx.Commit())
}

package outbox

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"

	"gorm.io/gorm"
)

//go:embed schema/mysql.sql
var mysqlSchema string

//go:embed schema/sqlite.sql
var sqliteSchema string

// A dialect has the statements that differ between databases. An id that is
// there already is left alone, whichever settings the connection has.
type dialect struct{ schema, insert string }

var dialects = map[string]dialect{
	"mysql": {
		schema: mysqlSchema,
		insert: "INSERT INTO belay_outbox (event_id, body) VALUES (?, ?) ON DUPLICATE KEY UPDATE event_id = event_id",
	},
	"sqlite": {
		schema: sqliteSchema,
		insert: "INSERT INTO belay_outbox (event_id, body) VALUES (?, ?) ON CONFLICT (event_id) DO NOTHING",
	},
}

// maxCounted bounds the work of counting the backlog.
const maxCounted = 100_000

// A table is belay_outbox in one database.
type table struct {
	pool *sql.DB
	dialect
}

// A row is one stored event.
type row struct {
	id   int64
	body []byte
}

func openTable(db *gorm.DB) (table, error) {
	if db == nil || db.Config == nil || db.Dialector == nil {
		return table{}, errors.New("outbox: db is missing")
	}
	d, ok := dialects[db.Name()]
	if !ok {
		return table{}, fmt.Errorf("outbox: db is %q; the outbox works on mysql and sqlite", db.Name())
	}
	if db.Statement != nil {
		if _, ok := db.Statement.ConnPool.(gorm.TxCommitter); ok {
			return table{}, errors.New("outbox: db is a transaction; give the *gorm.DB that began it")
		}
	}
	pool, err := db.DB()
	if err != nil {
		return table{}, fmt.Errorf("outbox: db has no connection pool: %w", err)
	}
	return table{pool: pool, dialect: d}, nil
}

// Migrate creates the table belay_outbox if it is not there. The statement is
// in the folder schema, for those who run migrations by other means.
func Migrate(ctx context.Context, db *gorm.DB) error {
	t, err := openTable(db)
	if err != nil {
		return err
	}
	if _, err := t.pool.ExecContext(ctx, t.schema); err != nil {
		return fmt.Errorf("outbox: create table: %w", err)
	}
	return nil
}

// insert stores an event. An id that is stored already is a success.
func (t table) insert(ctx context.Context, eventID string, body []byte) error {
	_, err := t.pool.ExecContext(ctx, t.dialect.insert, eventID, string(body))
	return err
}

// read returns up to limit rows with an id above after, oldest first.
func (t table) read(ctx context.Context, after int64, limit int) ([]row, error) {
	found, err := t.pool.QueryContext(ctx, "SELECT id, body FROM belay_outbox WHERE id > ? ORDER BY id LIMIT ?", after, limit)
	if err != nil {
		return nil, err
	}
	defer found.Close()
	var rows []row
	for found.Next() {
		var r row
		if err := found.Scan(&r.id, &r.body); err != nil {
			return nil, err
		}
		rows = append(rows, r)
	}
	return rows, found.Err()
}

func (t table) remove(ctx context.Context, id int64) error {
	_, err := t.pool.ExecContext(ctx, "DELETE FROM belay_outbox WHERE id = ?", id)
	return err
}

// count returns the number of rows, and maxCounted for all above.
func (t table) count(ctx context.Context) (n int, err error) {
	err = t.pool.QueryRowContext(ctx,
		"SELECT COUNT(*) FROM (SELECT id FROM belay_outbox LIMIT ?) AS backlog", maxCounted).Scan(&n)
	return n, err
}

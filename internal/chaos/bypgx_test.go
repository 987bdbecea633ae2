package chaos_test

import (
	"context"
	"database/sql/driver"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/guard/pgxguard"
)

// writesByPgx reports whether the worker of a name has a pool of pgx and writes by it: on
// PostgreSQL one of three does.
func writesByPgx(name string) bool {
	n, err := strconv.Atoi(strings.TrimPrefix(name, "w"))
	return err == nil && n%3 == 2 && kindOf(chosen()) == "postgres"
}

// pgxPool returns a connector that takes connections from a pool of pgx.
func pgxPool(ctx context.Context, dsn string, dial dialer) (driver.Connector, *pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, nil, err
	}
	config.ConnConfig.DialFunc = pgconn.DialFunc(dial)
	config.MaxConns = 4 * callers
	config.MaxConnIdleTime = maxIdle
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, nil, err
	}
	return stdlib.GetPoolConnector(pool), pool, nil
}

// watchedName is where a connection of pgx has who watches it.
const watchedName = "watched"

// known returns who watched the connection of pgx when it was taken from its pool before, or nil.
func (c *watchedConn) known() *watchedConn {
	conn, ok := c.driverConn.(*stdlib.Conn)
	if !ok {
		return nil
	}
	data := conn.Conn().PgConn().CustomData()
	before, _ := data[watchedName].(*watchedConn)
	data[watchedName] = c
	if before == nil {
		c.cable = conn.Conn().PgConn().Conn().(*cable)
	}
	return before
}

// cut ends the connection. A pool of pgx would give one that is closed by database/sql alone to others, while
// the call that had it goes on with it.
func (c *watchedConn) cut(ctx context.Context) {
	if conn, ok := c.driverConn.(*stdlib.Conn); ok {
		_ = conn.Conn().Close(ctx)
	}
	_ = c.Close()
}

// A pgxTx notes what is sent by pgx: watchedConn does not see it.
type pgxTx struct{ pgx.Tx }

func txByPgx(ctx context.Context) (pgxTx, error) {
	tx, err := pgxguard.Tx(ctx)
	return pgxTx{tx}, err
}

func (t pgxTx) note(ctx context.Context, query string, err error) {
	t.Conn().PgConn().CustomData()[watchedName].(*watchedConn).note(ctx, query, err)
}

func (t pgxTx) Exec(ctx context.Context, query string, args ...any) (pgconn.CommandTag, error) {
	tag, err := t.Tx.Exec(ctx, query, args...)
	t.note(ctx, query, err)
	return tag, err
}

// read reads the count of a row, and its version.
func (t pgxTx) read(ctx context.Context, w *worker, do, table string, id int64) (n, version int64, err error) {
	query := "SELECT n, version FROM " + table + " WHERE id = $1"
	err = t.QueryRow(ctx, query, id).Scan(&n, &version)
	t.note(ctx, query, err)
	if err == nil {
		w.read(do, version)
	}
	return n, version, err
}

// byPgx are the kinds of tasks of workers that write by pgx, where they have their own.
var byPgx = map[class][]workload{
	orders:   {{"insert by pgx", insertByPgx, orderRow, nil}},
	counters: {{"update by pgx", countByPgx, counterRow, nil}},
	items:    {{"two writes by pgx", sellByPgx, saleRows, nil}},
}

func insertByPgx(ctx context.Context, _ *gorm.DB, _ *worker, t task, do string) error {
	tx, err := txByPgx(ctx)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `INSERT INTO orders (no, "by") VALUES ($1, $2)`, fmt.Sprint(t.id), do)
	return err
}

func countByPgx(ctx context.Context, _ *gorm.DB, w *worker, t task, do string) error {
	tx, err := txByPgx(ctx)
	if err != nil {
		return err
	}
	n, version, err := tx.read(ctx, w, do, "counters", t.id)
	if err != nil {
		return err
	}
	linger(ctx, t.takes)
	tag, err := tx.Exec(ctx, "UPDATE counters SET n = $1, version = version + 1 WHERE id = $2 AND version = $3", n+1, t.id, version)
	return guard.Changed(ctx, guard.Row("counters", "id", t.id), version, tag.RowsAffected(), err)
}

// sellByPgx sends both writes in a batch.
func sellByPgx(ctx context.Context, _ *gorm.DB, w *worker, t task, do string) error {
	tx, err := txByPgx(ctx)
	if err != nil {
		return err
	}
	n, version, err := tx.read(ctx, w, do, "items", t.id)
	if err != nil {
		return err
	}
	const update = "UPDATE items SET n = $1, version = version + 1 WHERE id = $2 AND version = $3"
	const insert = "INSERT INTO sales (no, item, n) VALUES ($1, $2, $3)"
	var batch pgx.Batch
	batch.Queue(update, n+1, t.id, version)
	batch.Queue(insert, do, t.id, n+1)
	results := tx.SendBatch(ctx, &batch)
	tag, err := results.Exec()
	tx.note(ctx, update, err)
	if err := guard.Changed(ctx, guard.Row("items", "id", t.id), version, tag.RowsAffected(), err); err != nil {
		_ = results.Close()
		return err
	}
	_, err = results.Exec()
	tx.note(ctx, insert, err)
	if err != nil {
		_ = results.Close()
		return err
	}
	return results.Close()
}

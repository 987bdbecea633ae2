package fronts_test

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/guard/pgxguard"
)

// byPgx begins operations by pgx.
type byPgx struct{}

func (byPgx) operate(ctx context.Context, g *guard.Guard, key string, op func(context.Context) error, opts ...guard.Option) error {
	return pgxguard.Do(ctx, g, key, func(ctx context.Context, _ pgx.Tx) error { return op(ctx) }, opts...)
}

// pgxShop is pgx without database/sql.
type pgxShop struct{ byPgx }

func newPgx(_ testing.TB, _ *guard.Guard, d database) shop {
	if d.driver != "pgx" {
		return nil
	}
	return pgxShop{}
}

const (
	pgxSale = "INSERT INTO sales (no, buyer) VALUES (@no, @buyer)"
	pgxItem = "UPDATE items SET stock = stock - 1, version = version + 1 WHERE id = 7 AND version = $1"
)

func (s pgxShop) sell(ctx context.Context, no string) error {
	tx, err := pgxguard.Tx(ctx)
	if err != nil {
		return err
	}
	return s.sellIn(ctx, tx, no)
}

func (pgxShop) sellIn(ctx context.Context, tx pgx.Tx, no string) error {
	var b pgx.Batch
	b.Queue("SELECT 1")
	b.Queue(pgxSale, pgx.NamedArgs{"no": no, "buyer": "ann"})
	return tx.SendBatch(ctx, &b).Close()
}

func (pgxShop) take(ctx context.Context, version int64) (int64, error) {
	tx, err := pgxguard.Tx(ctx)
	if err != nil {
		return 0, err
	}
	tag, err := tx.Exec(ctx, pgxItem, version)
	return tag.RowsAffected(), err
}

func (s pgxShop) undo(ctx context.Context, no string) error {
	return undone(ctx, func(tx pgx.Tx) error { return s.sellIn(ctx, tx, no) })
}

// undone runs f in a transaction of pgx's own, and rolls that back.
func undone(ctx context.Context, f func(pgx.Tx) error) error {
	tx, err := pgxguard.Tx(ctx)
	if err != nil {
		return err
	}
	in, err := tx.Begin(ctx)
	if err != nil {
		return err
	}
	return errors.Join(f(in), in.Rollback(ctx))
}

// pgxQueries has the shape of what sqlc generates for pgx.
type pgxQueries struct{ db pgxDBTX }

type pgxDBTX interface {
	Exec(context.Context, string, ...any) (pgconn.CommandTag, error)
	Query(context.Context, string, ...any) (pgx.Rows, error)
	QueryRow(context.Context, string, ...any) pgx.Row
	CopyFrom(ctx context.Context, table pgx.Identifier, columns []string, source pgx.CopyFromSource) (int64, error)
	SendBatch(context.Context, *pgx.Batch) pgx.BatchResults
}

func (q *pgxQueries) withTx(tx pgx.Tx) *pgxQueries { return &pgxQueries{tx} }

type pgxSaleRow struct{ No, Buyer string }

func (q *pgxQueries) insertSale(ctx context.Context, no, buyer string) (r pgxSaleRow, err error) {
	row := q.db.QueryRow(ctx, "-- name: InsertSale :one\nINSERT INTO sales (no, buyer) VALUES ($1, $2) RETURNING no, buyer", no, buyer)
	err = row.Scan(&r.No, &r.Buyer)
	return r, err
}

func (q *pgxQueries) insertSales(ctx context.Context, sales [][]any) (int64, error) {
	return q.db.CopyFrom(ctx, pgx.Identifier{"sales"}, []string{"no", "buyer"}, pgx.CopyFromRows(sales))
}

func (q *pgxQueries) takeItem(ctx context.Context, version int64) (int64, error) {
	tag, err := q.db.Exec(ctx, "-- name: TakeItem :execrows\n"+pgxItem, version)
	if err != nil {
		return 0, err
	}
	return tag.RowsAffected(), nil
}

// sqlcPgxShop is sqlc's code for pgx.
type sqlcPgxShop struct {
	byPgx

	q *pgxQueries
}

func newSqlcPgx(_ testing.TB, _ *guard.Guard, d database) shop {
	if d.driver != "pgx" {
		return nil
	}
	return sqlcPgxShop{q: &pgxQueries{}}
}

func (s sqlcPgxShop) sell(ctx context.Context, no string) error {
	tx, err := pgxguard.Tx(ctx)
	if err != nil {
		return err
	}
	return s.sellIn(ctx, tx, no)
}

func (s sqlcPgxShop) sellIn(ctx context.Context, tx pgx.Tx, no string) error {
	q := s.q.withTx(tx)
	if _, err := q.insertSale(ctx, no, "ann"); err != nil {
		return err
	}
	_, err := q.insertSales(ctx, nil)
	return err
}

func (s sqlcPgxShop) take(ctx context.Context, version int64) (int64, error) {
	tx, err := pgxguard.Tx(ctx)
	if err != nil {
		return 0, err
	}
	return s.q.withTx(tx).takeItem(ctx, version)
}

func (s sqlcPgxShop) undo(ctx context.Context, no string) error {
	return undone(ctx, func(tx pgx.Tx) error { return s.sellIn(ctx, tx, no) })
}

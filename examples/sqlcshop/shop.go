// Package sqlcshop sells by what sqlc generates for pgx: package db, from schema.sql and query.sql.
package sqlcshop

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/belaygo/belay"
	"github.com/belaygo/belay/examples/sqlcshop/db"
	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/guard/pgxguard"
)

//go:generate sqlc generate

// ErrSoldOut is returned by Sell if no item is left.
var ErrSoldOut = errors.New("sqlcshop: sold out")

// Sell sells an item, once for each number of a sale. A repeat returns nil. g is a Guard on
// stdlib.OpenDBFromPool of a *pgxpool.Pool.
func Sell(ctx context.Context, g *guard.Guard, no string, item int64) error {
	sale, stock := guard.Row("sales", "no", no), guard.Row("items", "id", item)
	err := pgxguard.Do(ctx, g, fmt.Sprintf("item:%d", item), func(ctx context.Context, tx pgx.Tx) error {
		q := db.New(tx)
		i, err := q.GetItem(ctx, item)
		if err != nil {
			return err
		}
		if err := q.InsertSale(ctx, db.InsertSaleParams{No: no, Item: item}); err != nil {
			return err // a repeat, if the number is there
		}
		if i.Remains == 0 {
			return ErrSoldOut
		}
		n, err := q.TakeItem(ctx, db.TakeItemParams{ID: item, Version: i.Version})
		return guard.Changed(ctx, stock, i.Version, n, err)
	}, guard.Protects(sale, stock), guard.Wait(3*time.Second))
	if errors.Is(err, guard.ErrDuplicate) {
		return nil
	}
	return err
}

// Open is called once, in main. pool is stdlib.OpenDBFromPool of a *pgxpool.Pool. Close the
// Belay when no more calls begin.
func Open(ctx context.Context, pool *sql.DB, redisURL string) (*belay.Belay, error) {
	return belay.Open(ctx, belay.Config{Service: "shop", SQL: pool, Redis: redisURL})
}

// Record records a sale once. A repeat gets guard.ErrDuplicate.
func Record(ctx context.Context, b *belay.Belay, no string, item int64) error {
	return pgxguard.Do(ctx, b.Guard, "sale:"+no, func(ctx context.Context, tx pgx.Tx) error {
		return db.New(tx).InsertSale(ctx, db.InsertSaleParams{No: no, Item: item})
	}, guard.Protects(guard.Row("sales", "no", no)), guard.Wait(3*time.Second))
}

package pgxguard_test

import (
	"context"
	"fmt"
	"log"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/belaygo/belay"
	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/guard/pgxguard"
)

// sell sells one item, once for each number of a sale.
func sell(ctx context.Context, g *guard.Guard, no string, item int64) error {
	sale, stock := guard.Row("sales", "no", no), guard.Row("items", "id", item)
	return pgxguard.Do(ctx, g, fmt.Sprintf("item:%d", item), func(ctx context.Context, tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "INSERT INTO sales (no, item) VALUES ($1, $2)", no, item); err != nil {
			return err // also of a repeat, which finds the last item sold
		}
		var version int64
		err := tx.QueryRow(ctx, "SELECT version FROM items WHERE id = $1 AND remains > 0", item).Scan(&version)
		if err != nil {
			return err // pgx.ErrNoRows: sold out
		}
		return guard.UpdateRow(ctx, stock, version, "remains = remains - 1")
	}, guard.Protects(sale, stock))
}

func ExampleDo() {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, "postgres://shop:secret@127.0.0.1/shop")
	if err != nil {
		log.Fatal(err)
	}
	defer pool.Close()
	db := stdlib.OpenDBFromPool(pool)
	defer db.Close()
	b, err := belay.Open(ctx, belay.Config{Service: "shop", SQL: db, Redis: "redis://127.0.0.1:6379"})
	if err != nil {
		log.Fatal(err)
	}
	defer b.Close(ctx)

	if err := sell(ctx, b.Guard, "4711", 7); err != nil {
		log.Fatal(err)
	}
}

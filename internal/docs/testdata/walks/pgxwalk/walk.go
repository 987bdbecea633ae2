package pgxwalk

import (
	"context"
	"database/sql"
	"log"
	"os"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/belaygo/belay"
	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/guard/pgxguard"

	"shop/crowd"
	"shop/db"
)

// COPY SQL, sqlc or pgx: pgx

// Walk is the rest of the program.
func Walk() {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, os.Getenv("DSN"))
	if err != nil {
		log.Fatal(err)
	}
	if _, err := pool.Exec(ctx, "CREATE TABLE sales (no TEXT PRIMARY KEY, item BIGINT NOT NULL)"); err != nil {
		log.Fatal(err)
	}
	side := stdlib.OpenDBFromPool(pool)
	var shops []*belay.Belay // as in other processes
	for range 8 {
		b, err := Open(ctx, side, os.Getenv("REDIS_URL"))
		if err != nil {
			log.Fatal(err)
		}
		defer b.Close(ctx)
		shops = append(shops, b)
	}
	crowd.Repeat(func(caller int) error { return Record(ctx, shops[caller%8], os.Getenv("KEY"), 7) })
}

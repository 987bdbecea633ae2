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
	crowd.Repeat(func(int) error {
		return Record(ctx, side, os.Getenv("REDIS_URL"), os.Getenv("KEY"), 7)
	})
}

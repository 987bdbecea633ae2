package sqlwalk

import (
	"context"
	"database/sql"
	"log"
	"os"
	"time"

	_ "github.com/go-sql-driver/mysql"

	"github.com/belaygo/belay"
	"github.com/belaygo/belay/guard"

	"shop/crowd"
)

// COPY SQL, sqlc or pgx: database/sql

// Walk is the rest of the program.
func Walk() {
	pool, err := sql.Open("mysql", os.Getenv("DSN"))
	if err != nil {
		log.Fatal(err)
	}
	if _, err := pool.Exec("CREATE TABLE orders (no VARBINARY(64) NOT NULL PRIMARY KEY)"); err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	var shops []*belay.Belay // as in other processes
	for range 8 {
		b, err := openSQL(ctx, pool, os.Getenv("REDIS_URL"))
		if err != nil {
			log.Fatal(err)
		}
		defer b.Close(ctx)
		shops = append(shops, b)
	}
	crowd.Repeat(func(caller int) error { return placeSQL(ctx, shops[caller%8], os.Getenv("KEY")) })
}

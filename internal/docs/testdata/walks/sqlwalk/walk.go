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
	crowd.Repeat(func(int) error {
		return placeSQL(context.Background(), pool, os.Getenv("REDIS_URL"), os.Getenv("KEY"))
	})
}

package guard_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/memlock"
)

// sellSQL sells one item. The unique index on no makes a repeated request harmless, the item's
// version keeps the count right.
func sellSQL(ctx context.Context, g *guard.Guard, no string, item int64) error {
	sale, stock := guard.Row("sales", "no", no), guard.Row("items", "id", item)
	return g.DoSQL(ctx, fmt.Sprintf("item:%d", item), func(ctx context.Context, tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, "INSERT INTO sales (no, item) VALUES (?, ?)", no, item); err != nil {
			return err // also of a repeat, which finds the last item sold
		}
		var version int64
		err := tx.QueryRowContext(ctx, "SELECT version FROM items WHERE id = ? AND left_over > 0", item).Scan(&version)
		if err != nil {
			return err // sql.ErrNoRows: sold out
		}
		return guard.UpdateRow(ctx, stock, version, "left_over = left_over - 1")
	}, guard.Protects(sale, stock))
}

func ExampleGuard_DoSQL() {
	pool, err := sql.Open("sqlite3", ":memory:")
	if err != nil {
		log.Fatal(err)
	}
	defer pool.Close()
	pool.SetMaxOpenConns(1) // each connection would have a database of its own
	for _, statement := range []string{
		"CREATE TABLE sales (no VARCHAR(64) NOT NULL PRIMARY KEY, item INTEGER NOT NULL)",
		"CREATE TABLE items (id INTEGER PRIMARY KEY, left_over INTEGER NOT NULL, version INTEGER NOT NULL DEFAULT 1)",
		"INSERT INTO items (id, left_over) VALUES (7, 10)",
	} {
		if _, err := pool.Exec(statement); err != nil {
			log.Fatal(err)
		}
	}
	ctx := context.Background()
	db, err := dbguard.Open(ctx, pool) // belay.Open does it for Config.SQL
	if err != nil {
		log.Fatal(err)
	}
	locker, err := lock.New(memlock.New(), lock.Config{})
	if err != nil {
		log.Fatal(err)
	}
	g, err := guard.New(db, locker, guard.Config{Service: "shop"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(sellSQL(ctx, g, "A-1", 7))
	fmt.Println(errors.Is(sellSQL(ctx, g, "A-1", 7), guard.ErrDuplicate))
	if err := errors.Join(g.Close(ctx), locker.Close(ctx)); err != nil {
		log.Fatal(err)
	}
	// Output:
	// <nil>
	// true
}

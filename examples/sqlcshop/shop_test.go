package sqlcshop

import (
	"context"
	"crypto/rand"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/guard/guardtest"
)

//go:embed schema.sql
var schema string

// TestSqlcShop: three items are sold, and each sale is sent twice. It needs
// a PostgreSQL with an empty database.
func TestSqlcShop(t *testing.T) {
	dsn := os.Getenv("BELAY_POSTGRES_DSN")
	if os.Getenv("ON_SERVERS") == "" || dsn == "" {
		t.Skip("without a PostgreSQL")
	}
	ctx := t.Context()
	pool, err := pgxpool.New(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	if _, err := pool.Exec(ctx, schema+"; INSERT INTO items (id, remains) VALUES (7, 3)"); err != nil {
		t.Fatal(err)
	}
	side := stdlib.OpenDBFromPool(pool)
	t.Cleanup(func() { side.Close() })
	database, err := dbguard.Open(ctx, side)
	if err != nil {
		t.Fatal(err)
	}
	g := guardtest.New(t, database)
	for n := range 10 {
		err := Sell(ctx, g.Guard, fmt.Sprintf("A-%d", n/2), 7)
		if want := n/2 >= 3; errors.Is(err, ErrSoldOut) != want || !want && err != nil {
			t.Errorf("call %d: %v", n, err)
		}
	}
	var sales, remains int
	if err := pool.QueryRow(ctx, "SELECT (SELECT COUNT(*) FROM sales), remains FROM items").Scan(&sales, &remains); err != nil {
		t.Fatal(err)
	}
	if sales != 3 || remains != 0 {
		t.Errorf("%d sales and %d left, want 3 and 0", sales, remains)
	}
	wantRecordedOnce(t, side)
}

// wantRecordedOnce records one sale by several callers at once.
func wantRecordedOnce(t *testing.T, pool *sql.DB) {
	t.Helper()
	const callers = 8
	url, no := "redis+cluster://"+os.Getenv("BELAY_REDIS_ADDRS"), "R-"+rand.Text()
	errs := make(chan error, callers)
	for range callers {
		go func() {
			b, err := Open(t.Context(), pool, url) // as another process
			if err != nil {
				errs <- err
				return
			}
			err = Record(t.Context(), b, no, 7)
			if closing := b.Close(context.WithoutCancel(t.Context())); err == nil {
				err = closing
			}
			errs <- err
		}()
	}
	recorded := 0
	for range callers {
		switch err := <-errs; {
		case err == nil:
			recorded++
		case !errors.Is(err, guard.ErrDuplicate):
			t.Error(err)
		}
	}
	if recorded != 1 {
		t.Errorf("%d callers recorded the sale", recorded)
	}
}

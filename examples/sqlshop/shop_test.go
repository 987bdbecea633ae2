package sqlshop

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	_ "modernc.org/sqlite"

	"github.com/belaygo/belay/guard/guardtest"
)

// TestSell: a crowd buys three items, each sale is sent twice, and no lock holds.
func TestSell(t *testing.T) {
	g := guardtest.OpenSQL(t, "sqlite", Schema, "INSERT INTO items (id, remains) VALUES (7, 3)")
	g.LoseAll(true)
	var sold, out atomic.Int32
	var wg sync.WaitGroup
	for n := range 20 {
		wg.Go(func() {
			err := Sell(t.Context(), g.Guard, fmt.Sprintf("A-%d", n/2), 7)
			switch {
			case err == nil:
				sold.Add(1)
			case errors.Is(err, ErrSoldOut):
				out.Add(1)
			}
		})
	}
	wg.Wait()
	for n := range 10 { // what was refused meanwhile
		if err := Sell(t.Context(), g.Guard, fmt.Sprintf("A-%d", n), 7); err != nil && !errors.Is(err, ErrSoldOut) {
			t.Error(err)
		}
	}
	pool, err := g.DB.DB()
	if err != nil {
		t.Fatal(err)
	}
	var sales, remains int
	if err := pool.QueryRow("SELECT (SELECT COUNT(*) FROM sales), remains FROM items").Scan(&sales, &remains); err != nil {
		t.Fatal(err)
	}
	if sales != 3 || remains != 0 {
		t.Errorf("%d sales and %d left, want 3 and 0; at first %d were sold, and %d sold out", sales, remains, sold.Load(), out.Load())
	}
}

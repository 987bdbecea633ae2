package sqlshop

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	_ "modernc.org/sqlite"

	"github.com/belaygo/belay/guard/guardtest"
)

// TestSell: a crowd buys three items, each sale is sent twice, and no lock holds.
func TestSell(t *testing.T) {
	g := guardtest.OpenSQL(t, "sqlite", Schema, "INSERT INTO items (id, remains) VALUES (7, 3)")
	g.LoseAll(true)
	var wg sync.WaitGroup
	for n := range 20 {
		wg.Go(func() { _ = Sell(t.Context(), g.Guard, fmt.Sprintf("A-%d", n/2), 7) })
	}
	wg.Wait()
	g.LoseAll(false)
	for n := range 10 { // those that were refused
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
		t.Errorf("%d sales and %d left, want 3 and 0", sales, remains)
	}
}

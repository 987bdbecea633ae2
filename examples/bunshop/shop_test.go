package bunshop

import (
	"errors"
	"fmt"
	"testing"

	"github.com/uptrace/bun/dialect/sqlitedialect"
	_ "modernc.org/sqlite"

	"github.com/belaygo/belay/guard/guardtest"
)

// TestSell: three items are sold, and each sale is sent twice.
func TestSell(t *testing.T) {
	g := guardtest.OpenSQL(t, "sqlite",
		"CREATE TABLE sales (no VARCHAR(64) NOT NULL PRIMARY KEY, item BIGINT NOT NULL)",
		"CREATE TABLE items (id BIGINT NOT NULL PRIMARY KEY, remains BIGINT NOT NULL, version BIGINT NOT NULL)",
		"INSERT INTO items (id, remains, version) VALUES (7, 3, 1)")
	s := New(g.Guard, sqlitedialect.New())
	for n := range 10 {
		err := s.Sell(t.Context(), fmt.Sprintf("A-%d", n/2), 7)
		if want := n/2 >= 3; errors.Is(err, ErrSoldOut) != want || !want && err != nil {
			t.Errorf("call %d: %v", n, err)
		}
	}
	var n int64
	if err := g.DB.Table("sales").Count(&n).Error; err != nil || n != 3 {
		t.Errorf("%d sales, %v; want 3", n, err)
	}
}

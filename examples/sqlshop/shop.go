// Package sqlshop sells by database/sql, without GORM.
package sqlshop

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/belaygo/belay/guard"
)

// Schema creates the tables. The number of a sale is its second layer, and the version that of an item.
const Schema = `
CREATE TABLE sales (no VARCHAR(64) NOT NULL PRIMARY KEY, item BIGINT NOT NULL);
CREATE TABLE items (id BIGINT NOT NULL PRIMARY KEY, remains BIGINT NOT NULL, version BIGINT NOT NULL DEFAULT 1)`

// ErrSoldOut is returned by Sell if no item is left.
var ErrSoldOut = errors.New("sqlshop: sold out")

// Sell sells an item, once for each number of a sale. A repeat returns nil.
func Sell(ctx context.Context, g *guard.Guard, no string, item int64) error {
	sale, stock := guard.Row("sales", "no", no), guard.Row("items", "id", item)
	err := g.DoSQL(ctx, fmt.Sprintf("item:%d", item), func(ctx context.Context, tx *sql.Tx) error {
		var remains, version int64
		err := tx.QueryRowContext(ctx, "SELECT remains, version FROM items WHERE id = ?", item).Scan(&remains, &version)
		if err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, "INSERT INTO sales (no, item) VALUES (?, ?)", no, item); err != nil {
			return err // a repeat, if the number is there
		}
		if remains == 0 {
			return ErrSoldOut
		}
		return guard.UpdateRow(ctx, stock, version, "remains = remains - 1")
	}, guard.Protects(sale, stock), guard.Wait(3*time.Second))
	if errors.Is(err, guard.ErrDuplicate) {
		return nil
	}
	return err
}

// Package shop is the business of the experiment: a table of orders, a table of
// stock, and one implementation per method of the two operations on them. What
// an operation does to the rows is the same for every method of its kind; only
// what keeps it from taking effect twice differs. Serve runs the shop as an HTTP
// service, and Seed fills its tables.
package shop

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/dbguard"
)

// schema creates the tables, with a semicolon at the end of each statement.
//
//go:embed schema.sql
var schema string

// An Order is what the insert methods write. Orders are numbered as time goes
// by, as they are in most shops, so new ones come last in the unique index.
type Order struct {
	ID        int64
	No        string
	Item      int64
	Amount    int
	CreatedAt time.Time
}

// A Stock is what the selling methods write.
type Stock struct {
	ID        int64
	Name      string
	Remaining int
	Version   dbguard.Version
}

// PlainStock is the same row to the methods that have to look after the version
// themselves.
type PlainStock struct {
	ID        int64
	Name      string
	Remaining int
	Version   int64
}

// TableName implements gorm's Tabler.
func (PlainStock) TableName() string { return "stocks" }

var (
	// ErrSoldOut: nothing is left.
	ErrSoldOut = errors.New("shop: sold out")
	// errConflict: another has updated the row since it was read.
	errConflict = errors.New("shop: the row has changed")
)

// newOrder returns the order of a request.
func newOrder(no string) *Order { return &Order{No: no, Item: 7, Amount: 1} }

// take sells one.
func take(remaining *int) error {
	if *remaining <= 0 {
		return ErrSoldOut
	}
	*remaining--
	return nil
}

// insertOrder is the business operation of the methods without Belay, in a
// transaction.
func insertOrder(ctx context.Context, db *gorm.DB, o *Order) error {
	return db.WithContext(ctx).Transaction(func(tx *gorm.DB) error { return tx.Create(o).Error })
}

// CountOrders counts the orders with numbers from one to another, and those that differ.
func CountOrders(ctx context.Context, db *sql.DB, from, to string) (all, distinct int, err error) {
	err = db.QueryRowContext(ctx, "SELECT COUNT(*), COUNT(DISTINCT no) FROM orders WHERE no BETWEEN ? AND ?", from, to).Scan(&all, &distinct)
	if err != nil {
		err = fmt.Errorf("count the orders: %w", err)
	}
	return all, distinct, err
}

// CleanUp removes the orders that a run has added to the seeded ones.
func CleanUp(ctx context.Context, db *sql.DB, seeded int64) error {
	const chunk = 20_000
	for removed := int64(chunk); removed == chunk; {
		done, err := db.ExecContext(ctx, "DELETE FROM orders WHERE id > ? LIMIT ?", seeded, chunk)
		if err == nil {
			removed, err = done.RowsAffected()
		}
		if err != nil {
			return fmt.Errorf("remove the orders of the run: %w", err)
		}
	}
	return nil
}

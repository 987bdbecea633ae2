// Package bunshop sells by bun, an ORM on database/sql.
package bunshop

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/schema"

	"github.com/belaygo/belay/guard"
)

// A Sale has its second layer in its number.
type Sale struct {
	No   string `bun:",pk"`
	Item int64
}

// An Item has its second layer in its version.
type Item struct {
	ID      int64 `bun:",pk"`
	Remains int64
	Version int64
}

// ErrSoldOut is returned by Sell if no item is left.
var ErrSoldOut = errors.New("bunshop: sold out")

// A Shop sells items.
type Shop struct {
	guard *guard.Guard
	db    *bun.DB
}

// New returns a shop. What it writes by its *bun.DB is in the operation of the ctx that bun is given.
func New(g *guard.Guard, dialect schema.Dialect) *Shop {
	return &Shop{g, bun.NewDB(g.Pool(), dialect)}
}

// Sell sells an item, once for each number of a sale. A repeat returns nil.
func (s *Shop) Sell(ctx context.Context, no string, item int64) error {
	sale, stock := guard.Row("sales", "no", no), guard.Row("items", "id", item)
	err := s.guard.DoSQL(ctx, fmt.Sprintf("item:%d", item), func(ctx context.Context, _ *sql.Tx) error {
		i := Item{ID: item}
		if err := s.db.NewSelect().Model(&i).WherePK().Scan(ctx); err != nil {
			return err
		}
		if _, err := s.db.NewInsert().Model(&Sale{No: no, Item: item}).Exec(ctx); err != nil {
			return err // a repeat, if the number is there
		}
		if i.Remains == 0 {
			return ErrSoldOut
		}
		res, err := s.db.NewUpdate().Model(&i).Set("remains = remains - 1").Set("version = version + 1").
			WherePK().Where("version = ?", i.Version).Exec(ctx)
		var n int64
		if err == nil {
			n, err = res.RowsAffected()
		}
		return guard.Changed(ctx, stock, i.Version, n, err)
	}, guard.Protects(sale, stock), guard.Wait(3*time.Second))
	if errors.Is(err, guard.ErrDuplicate) {
		return nil
	}
	return err
}

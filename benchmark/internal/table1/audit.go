package table1

import (
	"context"
	"fmt"

	"github.com/belaygo/belay/benchmark/internal/result"
	"github.com/belaygo/belay/benchmark/internal/shop"
)

// stock is what the database has of an item.
type stock struct{ remaining, version int64 }

// prepare fills the shelf before a sale.
func (e *experiment) prepare(ctx context.Context, m shop.Method, p *plan) (stock, error) {
	if !m.Sells() {
		return stock{}, nil
	}
	_, err := e.Stage.DB.ExecContext(ctx, "UPDATE stocks SET remaining = ?, version = version + 1 WHERE id = ?", e.cfg.Stock, p.item)
	if err != nil {
		return stock{}, fmt.Errorf("fill the shelf: %w", err)
	}
	return e.stock(ctx, p.item)
}

func (e *experiment) stock(ctx context.Context, item int64) (s stock, err error) {
	err = e.Stage.DB.QueryRowContext(ctx, "SELECT remaining, version FROM stocks WHERE id = ?", item).
		Scan(&s.remaining, &s.version)
	if err != nil {
		return s, fmt.Errorf("look at item %d: %w", item, err)
	}
	return s, nil
}

// auditSale compares what was sold with what has gone from the shelf. Every sale
// counts the version up by one.
func (e *experiment) auditSale(ctx context.Context, m shop.Method, p *plan, before stock, r *result.Round) error {
	after, err := e.stock(ctx, p.item)
	if err != nil {
		return err
	}
	sold, gone, updates := int64(r.Succeeded), before.remaining-after.remaining, after.version-before.version
	r.Oversold = int(max(0, sold-before.remaining))
	// A request that ended in an error may have been done all the same.
	if errors := int64(r.Results[string(shop.Failed)]); gone < sold || gone > sold+errors || updates < sold || updates > sold+errors {
		r.Lost = int(max(1, sold-gone, sold-updates))
		e.problem(m, r.Round, "%d sold, but %d gone from the shelf in %d updates", sold, gone, updates)
	}
	if r.Oversold > 0 || after.remaining < 0 {
		e.problem(m, r.Round, "%d sold of %d", sold, before.remaining)
	}
	return nil
}

// auditOrders compares the answers to the users with the rows in the table.
func (e *experiment) auditOrders(ctx context.Context, m shop.Method, p *plan, r *result.Round) error {
	all, distinct, err := shop.CountOrders(ctx, e.Stage.DB, p.orders[0], p.orders[len(p.orders)-1])
	if err != nil {
		return err
	}
	// An order with two answers "done" is a duplicate, too, even if it has one row.
	r.Duplicates = max(all-distinct, r.Succeeded-len(p.orders), 0)
	r.Lost = max(0, r.Succeeded-all)
	if r.Duplicates > 0 || r.Lost > 0 || all > r.Succeeded+r.Results[string(shop.Failed)] {
		e.problem(m, r.Round, "%d requests were told that their order is placed; the table has %d orders, %d of them different",
			r.Succeeded, all, distinct)
	}
	return nil
}

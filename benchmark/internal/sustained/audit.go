package sustained

import (
	"context"
	"fmt"

	"github.com/belaygo/belay/benchmark/internal/result"
	"github.com/belaygo/belay/benchmark/internal/shop"
)

// fillShelves chooses the items that are sold, and puts plenty of each there.
func (r *run) fillShelves(ctx context.Context) error {
	step := max(1, r.cfg.Stage.Rows/items)
	for id := int64(1); len(r.items) < items && id <= r.cfg.Stage.Rows; id += step {
		r.items = append(r.items, id)
		_, err := r.stage.DB.ExecContext(ctx, "UPDATE stocks SET remaining = ?, version = version + 1 WHERE id = ?", plenty, id)
		if err != nil {
			return fmt.Errorf("fill the shelves: %w", err)
		}
	}
	return nil
}

// state is what the database has before or after a step.
type state struct{ orders, remaining int64 }

func (r *run) state(ctx context.Context, prefix string) (s state, err error) {
	err = r.stage.DB.QueryRowContext(ctx, "SELECT COUNT(*) FROM orders WHERE no > ? AND no < ?", prefix, prefix+"~").Scan(&s.orders)
	if err != nil {
		return s, fmt.Errorf("count the orders: %w", err)
	}
	for _, id := range r.items {
		var n int64
		if err := r.stage.DB.QueryRowContext(ctx, "SELECT remaining FROM stocks WHERE id = ?", id).Scan(&n); err != nil {
			return s, fmt.Errorf("look at the shelves: %w", err)
		}
		s.remaining += n
	}
	return s, nil
}

// audit compares what users were told with what the database has. A request that
// ended in an error may have been done all the same.
func (r *run) audit(ctx context.Context, m shop.Method, prefix string, before state, step *result.Step) error {
	after, err := r.state(ctx, prefix)
	if err != nil {
		return err
	}
	told, failed := int64(step.Results[string(shop.Done)]), int64(step.Results[string(shop.Failed)])
	done := after.orders - before.orders
	if m.Sells() {
		done = before.remaining - after.remaining
	}
	if done < told || done > told+failed {
		p := fmt.Sprintf("%s, keys %s, repeats %s, %d users: %d requests were told that they are done, the database has %d",
			m, step.Keys, step.Repeats, step.Concurrency, told, done)
		step.Problems = append(step.Problems, p)
		r.result.Problems = append(r.result.Problems, p)
	}
	return nil
}

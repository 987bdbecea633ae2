package sustained

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/belaygo/belay/benchmark/internal/result"
	"github.com/belaygo/belay/benchmark/internal/shop"
)

// fillShelves chooses the items that are sold, and puts plenty of each there.
func (r *run) fillShelves(ctx context.Context) error {
	step := max(1, r.cfg.Rows/items)
	var list []string
	for id := int64(1); len(r.items) < items && id <= r.cfg.Rows; id += step {
		r.items = append(r.items, id)
		list = append(list, strconv.FormatInt(id, 10))
	}
	r.list = strings.Join(list, ",")
	_, err := r.Stage.DB.ExecContext(ctx, "UPDATE stocks SET remaining = ?, version = version + 1 WHERE id IN ("+r.list+")", plenty) //nolint:gosec // numbers
	if err != nil {
		return fmt.Errorf("fill the shelves: %w", err)
	}
	return nil
}

// state is what the database has before or after a step.
type state struct {
	orders, distinct int
	remaining        int64
}

func (r *run) state(ctx context.Context, prefix string) (s state, err error) {
	if s.orders, s.distinct, err = shop.CountOrders(ctx, r.Stage.DB, prefix, prefix+"~"); err != nil {
		return s, err
	}
	err = r.Stage.DB.QueryRowContext(ctx, "SELECT SUM(remaining) FROM stocks WHERE id IN ("+r.list+")").Scan(&s.remaining)
	if err != nil {
		return s, fmt.Errorf("look at the shelves: %w", err)
	}
	return s, nil
}

// audit compares the answers to the users with what the database has. A request that
// ended in an error may have been done all the same.
func (r *run) audit(ctx context.Context, m shop.Method, prefix string, before state, step *result.Step) error {
	after, err := r.state(ctx, prefix)
	if err != nil {
		return err
	}
	if after.orders > after.distinct {
		r.fault(step, "%d of %d orders are duplicates", after.orders-after.distinct, after.orders)
	}
	told, failed := int64(step.Results[string(shop.Done)]), int64(step.Results[string(shop.Failed)])
	done := int64(after.orders - before.orders)
	if m.Sells() {
		done = before.remaining - after.remaining
	}
	if done < told || done > told+failed {
		r.fault(step, "%d requests were told that they are done, the database has %d", told, done)
	}
	return nil
}

func (r *run) fault(step *result.Step, format string, args ...any) {
	r.Fault("%s, keys %s, repeats %s, %d users: %s", step.Method, step.Keys, step.Repeats, step.Concurrency, fmt.Sprintf(format, args...))
}

package versus

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"golang.org/x/sync/errgroup"
)

// stocked is how many a heat may sell.
const stocked = 1_000_000_000

// run has the callers of c send requests until the time is up, and compares the
// answers with what the database has. The heat has order numbers and an item of its own.
func (a *arena) run(ctx context.Context, c Case, item int64, warm, span time.Duration) (f Figures, err error) {
	_, err = a.db.ExecContext(ctx, "INSERT INTO stocks (id, name, remaining, version) VALUES (?, ?, ?, 1)", item, c.name, stocked)
	if err != nil {
		return f, fmt.Errorf("stock an item: %w", err)
	}
	runtime.GC() // what the one before has left behind
	j := job{Case: c.name, Callers: c.callers / c.processes, Run: a.prefix, Item: item}
	var o outcome
	grown, err := a.meter.Growth(ctx, func() (err error) {
		j.From = time.Now().Add(warm)
		j.To = j.From.Add(span)
		if c.processes == 1 {
			o = c.crowd(ctx, a.shop, j)
			return ctx.Err()
		}
		o, err = spread(j, a.workers[:c.processes])
		return err
	})
	if err != nil {
		return f, err
	}
	if err := c.verify(ctx, a, j, o.Done); err != nil {
		return f, err
	}
	f = Figures{Case: c.name, C: c.callers, Processes: c.processes, Errors: o.Errors, err: o.Error}
	f.Ops = float64(o.InTime) / span.Seconds()
	f.P50, f.P99 = o.Waited.Quantile(0.5).Microseconds(), o.Waited.Quantile(0.99).Microseconds()
	each := float64(max(1, o.Asked))
	f.commands, f.statements, f.micros = grown["redis_commands"]/each, grown["Questions"]/each, grown["cpu_self"]/each
	return f, nil
}

// spread has each of the workers do the job, and adds up what they answer.
func spread(j job, workers []*worker) (sum outcome, err error) {
	const apart = 100_000_000 // the numbers of requests of two processes
	outcomes := make([]outcome, len(workers))
	var group errgroup.Group
	for i, w := range workers {
		mine := j
		mine.First = int64(i) * apart
		group.Go(func() (err error) {
			outcomes[i], err = w.ask(mine)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return sum, err
	}
	for i := range outcomes {
		sum.add(&outcomes[i])
	}
	return sum, nil
}

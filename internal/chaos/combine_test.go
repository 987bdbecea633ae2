package chaos_test

import (
	"context"

	"github.com/belaygo/belay/guard"
)

// grow is an Update that shares its transaction with its like.
func grow(w *worker, t task, do string) (guard.Change, *Stock) {
	row := &Stock{ID: t.id}
	return guard.Update(row, func(s *Stock) error {
		w.read(do, int64(s.Version))
		s.N++
		linger(context.Background(), t.takes)
		return nil
	}), row
}

// growAndSell has a Receipt, too. Some of these have a message.
func growAndSell(w *worker, t task, do string) (guard.Change, *Stock) {
	row, receipt := &Stock{ID: t.id}, &Receipt{No: do, Stock: t.id, Sent: draws(w.seed, do+" sends").IntN(8) == 0}
	change := guard.All(guard.Update(row, func(s *Stock) error {
		w.read(do, int64(s.Version))
		s.N++
		receipt.N = s.N
		linger(context.Background(), t.takes)
		return nil
	}), guard.Insert(receipt))
	if receipt.Sent {
		send := guard.SendFunc(func() (guard.Message, error) { return noteOf(topicOf(t.id), t.key, do, receipt.N) })
		change = guard.All(send, change)
	}
	return change, row
}

// run runs the call of a task. It returns the version that its row has in memory then, if it
// has one.
func (w *worker) run(ctx context.Context, t task, do string) (version int64, err error) {
	if t.change == nil {
		return 0, w.guard.Do(ctx, t.key, w.operation(t, do), t.opts...)
	}
	change, row := t.change(w, t, do)
	err = w.guard.Apply(ctx, t.key, change, append(t.opts, guard.Combine())...)
	return int64(row.Version), err
}

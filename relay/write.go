package relay

import (
	"context"
	"errors"
	"slices"
	"time"
)

// write writes the results. Rows stay in hand until that has succeeded, and a key is not sent before
// its failure is written.
func (l *loop) write() error { return errors.Join(l.remove(), l.park()) }

// remove deletes the rows that were accepted. After a failure it deletes them one by one: somebody may
// hold the lock of one.
func (l *loop) remove() error {
	for len(l.sent) > 0 {
		if l.apart {
			return l.removeApart()
		}
		if err := l.removeRows(l.cfg.limits.writeTimeout, l.sent); err != nil {
			l.apart = true
			return err
		}
		l.sent = nil
	}
	return nil
}

// maxLocked is how many rows that can't be deleted a turn meets.
const maxLocked = 3

// removeApart deletes rows one by one, and goes on behind some that can't be deleted.
func (l *loop) removeApart() error {
	var errs []error
	rows := l.sent
	for len(rows) > 0 && len(errs) < maxLocked {
		r := rows[0]
		rows = rows[1:]
		if err := l.removeRows(l.cfg.limits.writeTimeout/maxLocked, []row{r}); err != nil {
			errs = append(errs, err)
			rows = append(rows, r) // the next turn begins with the others
			if len(errs) == len(rows) {
				break
			}
		}
	}
	l.sent, l.apart = rows, len(errs) > 0
	return errors.Join(errs...)
}

func (l *loop) removeRows(limit time.Duration, rows []row) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(l.ctx), limit)
	defer cancel()
	if err := l.table.remove(ctx, rows); err != nil {
		return err
	}
	l.window.release(rows...)
	if err := l.unpark(ctx, rows); err != nil {
		l.cfg.Logger.Debug("keys are still parked", "error", err) // clean unparks them
	}
	return nil
}

// unpark ends what parks keys in the names of rows that were deleted. What it leaves, clean ends.
func (l *loop) unpark(ctx context.Context, gone []row) error {
	var keys []parked
	for _, r := range gone {
		if r.parked {
			keys = append(keys, parked{r.sum, r.msg.ID})
		}
	}
	for part := range slices.Chunk(keys, maxParked) {
		if err := l.table.unpark(ctx, part); err != nil {
			return err
		}
	}
	return nil
}

func (l *loop) park() error {
	for len(l.failed) > 0 {
		ctx, cancel := l.limited()
		part := l.failed[:min(len(l.failed), maxParked)]
		err := l.table.park(ctx, part)
		cancel()
		if err != nil {
			return err
		}
		for _, f := range part {
			l.window.release(f.row)
			q := l.window.queues[f.sum]
			q.failed = false
			l.window.drop(q)
		}
		l.failed = l.failed[len(part):]
	}
	l.failed = nil
	return nil
}

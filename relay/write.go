package relay

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/belaygo/belay/internal/fail"
)

// write writes the results. Rows stay in hand until that has succeeded, and a key is not sent before
// its failure is written.
func (l *loop) write() error { return errors.Join(l.remove(), l.park()) }

// remove deletes the rows that were accepted. After a failure it deletes them one by one: somebody may
// hold the lock of one.
func (l *loop) remove() error {
	switch {
	case len(l.sent) == 0:
		return nil
	case l.oneByOne:
		return l.removeOneByOne()
	}
	if err := l.removeRows(l.cfg.limits.writeTimeout, l.sent); err != nil {
		l.oneByOne = true
		return err
	}
	l.sent = nil
	return nil
}

// maxLocked is how many rows that cannot be deleted a turn tries.
const maxLocked = 3

// removeOneByOne goes on behind rows that cannot be deleted. The next turn begins with those that it
// has not tried.
func (l *loop) removeOneByOne() error {
	var errs []error
	var locked []row
	rows := l.sent
	for ; len(rows) > 0 && len(locked) < maxLocked; rows = rows[1:] {
		if err := l.removeRows(l.cfg.limits.writeTimeout/maxLocked, rows[:1]); err != nil {
			errs = append(errs, err)
			locked = append(locked, rows[0])
		}
	}
	l.sent, l.oneByOne = slices.Concat(rows, locked), len(locked) > 0
	return errors.Join(errs...)
}

func (l *loop) removeRows(limit time.Duration, rows []row) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(l.ctx), limit)
	defer cancel()
	if err := l.table.remove(ctx, rows); err != nil {
		return err
	}
	fail.Point("relay/deleted")
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
		var dead map[string]bool
		if err == nil {
			fail.Point("relay/parked")
			dead, err = l.table.parkedDead(ctx, part)
		}
		cancel()
		if err != nil {
			return err
		}
		for _, f := range part {
			if dead[f.msg.ID] {
				l.announce(f)
			}
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

package sqllock

import (
	"context"

	"github.com/belaygo/belay/internal/sqldb"
	"github.com/belaygo/belay/lock/lockengine"
)

// Release implements lockengine.Engine. The row stays: were it deleted, an acquire that has read
// the clock before that of the last holder would get a smaller token. Waiters of this
// process are woken without a poll.
func (e *engine) Release(ctx context.Context, r lockengine.Request) error {
	if r.Mark > 0 {
		e.mark(ctx, r)
	}
	err := e.release(ctx, r)
	if err == nil && !r.Quiet {
		e.poller.wake(r.Key)
	}
	return err
}

func (e *engine) release(ctx context.Context, r lockengine.Request) error {
	res, err := e.exec(ctx, "release", "UPDATE belay_lock SET owner = {nobody}, until_us = {now} WHERE name = ? AND owner = ? AND until_us > {now}",
		[]any{[]byte(r.Key), r.Owner})
	if err != nil {
		return err
	}
	n, err := res.RowsAffected()
	if err == nil && n == 0 {
		err = lockengine.ErrNotHeld
	}
	return err
}

// mark sets a marker, which is a hint: that it could not be set is not reported.
func (e *engine) mark(ctx context.Context, r lockengine.Request) {
	us := microseconds(r.Mark)
	args := []any{[]byte(r.Key), us}
	if !e.Returning {
		args = append(args, us)
	}
	_, _ = e.exec(ctx, "mark", e.dialect.mark, args)
}

// marked reports whether a key has a marker, as far as that can be read.
func (e *engine) marked(ctx context.Context, key string) (yes bool) {
	_ = e.query(ctx, "read marker", "SELECT until_us > {now} FROM belay_done WHERE name = ?", []any{[]byte(key)},
		func(scan sqldb.Scan) error { return scan(&yes) })
	return yes
}

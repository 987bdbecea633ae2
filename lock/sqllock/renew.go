package sqllock

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/belaygo/belay/internal/lasting"
	"github.com/belaygo/belay/internal/sqldb"
	"github.com/belaygo/belay/lock/lockengine"
)

// batch is how many locks one statement renews or looks at.
const batch = 256

// Renew implements lockengine.Engine: one statement renews up to 256 locks.
func (e *engine) Renew(ctx context.Context, rs []lockengine.Request, ttl time.Duration) []error {
	if err := lasting.Check("sqllock", ttl); err != nil {
		return slices.Repeat([]error{err}, len(rs))
	}
	errs := make([]error, 0, len(rs))
	for len(rs) > 0 {
		n := min(batch, len(rs))
		errs = append(errs, e.renew(ctx, rs[:n], ttl)...)
		rs = rs[n:]
	}
	return errs
}

// A hold names a row as a request does.
type hold struct{ name, owner string }

func (e *engine) renew(ctx context.Context, rs []lockengine.Request, ttl time.Duration) []error {
	errs := make([]error, len(rs))
	ours, err := e.renewed(ctx, rs, ttl)
	for i, r := range rs {
		switch {
		case err != nil:
			errs[i] = err
		case !ours[hold{r.Key, r.Owner}]:
			errs[i] = lockengine.ErrNotHeld
		}
	}
	return errs
}

// renewed returns which locks are their owners'. A renewal that was held up in the database
// takes nothing from a later one that overtook it. It changes each row, as MySQL counts only
// those.
func (e *engine) renewed(ctx context.Context, rs []lockengine.Request, ttl time.Duration) (map[hold]bool, error) {
	const what, update = "renew", "UPDATE belay_lock{byName} SET until_us = {greatest}(until_us + 1, {now} + ?) WHERE until_us > {now} AND "
	these, args := holds(rs)
	renewals := append([]any{microseconds(ttl)}, args...)
	if e.Returning {
		return e.found(ctx, what, update+these+" RETURNING name, owner", renewals)
	}
	res, err := e.exec(ctx, what, update+these, renewals)
	if err != nil {
		return nil, err
	}
	n, err := res.RowsAffected()
	switch {
	case err != nil:
		return nil, err
	case n == int64(len(rs)):
		ours := make(map[hold]bool, len(rs))
		for _, r := range rs {
			ours[hold{r.Key, r.Owner}] = true
		}
		return ours, nil
	case n == 0:
		return nil, nil //nolint:nilnil // none
	}
	// Halves show which were not changed. A look at the table could be at a replica that
	// does not know yet that another has the lock.
	first, err := e.renewed(ctx, rs[:len(rs)/2], ttl)
	if err != nil {
		return nil, err
	}
	second, err := e.renewed(ctx, rs[len(rs)/2:], ttl)
	if err != nil {
		return nil, err
	}
	ours := make(map[hold]bool, len(first)+len(second))
	maps.Copy(ours, first)
	maps.Copy(ours, second)
	return ours, nil
}

// found returns the rows that a statement returns.
func (e *engine) found(ctx context.Context, what, statement string, args []any) (map[hold]bool, error) {
	rows := make(map[hold]bool)
	err := e.query(ctx, what, statement, args, func(scan sqldb.Scan) error {
		var name []byte
		var owner string
		err := scan(&name, &owner)
		rows[hold{string(name), owner}] = true
		return err
	})
	return rows, err
}

// holds returns the condition for the rows of requests, and its arguments.
func holds(rs []lockengine.Request) (condition string, args []any) {
	for _, r := range rs {
		args = append(args, []byte(r.Key), r.Owner)
	}
	return "(" + sqldb.List("name = ? AND owner = ?", " OR ", len(rs)) + ")", args
}

// held returns which of the names are locked.
func (e *engine) held(ctx context.Context, names []string) (map[string]bool, error) {
	locked := make(map[string]bool)
	for len(names) > 0 {
		n := min(batch, len(names))
		var args []any
		for _, name := range names[:n] {
			args = append(args, []byte(name))
		}
		rows, err := e.found(ctx, "poll", "SELECT name, owner FROM belay_lock WHERE name IN ("+sqldb.List("?", ", ", n)+") AND NOT "+isFree, args)
		if err != nil {
			return nil, err
		}
		for row := range rows {
			locked[row.name] = true
		}
		names = names[n:]
	}
	return locked, nil
}

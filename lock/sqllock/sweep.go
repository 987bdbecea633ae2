package sqllock

import (
	"context"
	"time"

	"github.com/belaygo/belay/internal/background"
	"github.com/belaygo/belay/internal/sqldb"
	"github.com/belaygo/belay/internal/wait"
)

const (
	// Rows are deleted this long after their lock or marker has ended: for longer than a
	// statement can have waited that would use the row's token.
	keep = 10 * time.Minute
	// sweepRows is how many are deleted at once.
	sweepRows = 1000
	// Each engine sweeps once in this time.
	sweepFrom, sweepTo = 30 * time.Second, 90 * time.Second
)

// sweepAll deletes old rows now and then, until the engine is closed.
func (e *engine) sweepAll() {
	defer close(e.swept)
	for wait.Sleep(e.ctx, wait.Between(sweepFrom, sweepTo), nil) == nil {
		for _, table := range []string{"belay_lock", "belay_done"} {
			err := background.Do(e.cfg.Logger, "delete old rows of locks", func() error { return e.sweep(e.ctx, table, keep) })
			if err != nil && e.ctx.Err() == nil {
				e.cfg.Logger.Warn("delete old rows of locks", "table", table, "error", err)
			}
		}
	}
}

// sweep deletes from a table the rows that ended longer than age ago.
func (e *engine) sweep(ctx context.Context, table string, age time.Duration) error {
	for {
		n, err := e.sweepOnce(ctx, table, age)
		if err != nil || n < sweepRows {
			return err
		}
	}
}

// sweepOnce reads which rows are old and deletes them by their names, as MySQL would lock
// the gaps of an index that it searches. It returns how many it deleted.
func (e *engine) sweepOnce(ctx context.Context, table string, age time.Duration) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	const old = "until_us < {now} - ?"
	which, args := old, []any{microseconds(age)}
	if table == "belay_lock" { // by a clock that was set back, the next token could be less
		which, args = which+" AND token < ({now} - ?) * 1024", append(args, microseconds(age))
	}
	var names []any
	err := e.query(ctx, "sweep", "SELECT name FROM "+table+" WHERE "+which+" ORDER BY until_us LIMIT ?", append(args, sweepRows),
		func(scan sqldb.Scan) error {
			var name []byte
			err := scan(&name)
			names = append(names, name)
			return err
		})
	if err != nil || len(names) == 0 {
		return 0, err
	}
	res, err := e.exec(ctx, "sweep", "DELETE FROM "+table+" WHERE "+old+" AND name IN ("+sqldb.List("?", ", ", len(names))+")",
		append([]any{microseconds(age)}, names...))
	if err != nil {
		return 0, err
	}
	n, err := res.RowsAffected()
	return int(n), err
}

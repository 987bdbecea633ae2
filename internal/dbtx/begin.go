package dbtx

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/belaygo/belay/internal/dbtx/dialect"
	"github.com/belaygo/belay/internal/dbtx/evidence"
	"github.com/belaygo/belay/internal/dbtx/journal"
	"github.com/belaygo/belay/internal/dbtx/pinned"
	"github.com/belaygo/belay/internal/dbtx/protected"
	"github.com/belaygo/belay/internal/dbtx/reader"
	"github.com/belaygo/belay/internal/fail"
	"github.com/belaygo/belay/internal/sqlfront"
	"github.com/belaygo/belay/internal/wait"
)

// ErrNoConnection is returned by Begin when Options.BeginTimeout has passed without a
// connection from the pool or the database. It does not match context.DeadlineExceeded,
// because the caller's context has not ended.
var ErrNoConnection = errors.New("dbguard: no connection to the database")

// begin starts a guarded transaction on a connection of a pool. It needs a front.
func begin(ctx context.Context, pool *sql.DB, d dialect.Dialect, known *database, o Options) (*Tx, error) {
	o = o.withDefaults()
	bounded := ctx
	if o.BeginTimeout > 0 {
		var cancel context.CancelFunc
		bounded, cancel = context.WithTimeout(ctx, o.BeginTimeout)
		defer cancel()
	}
	fail.Point("dbtx/before-begin")
	c, err := pinned.Begin(bounded, pool, d, &known.sessions)
	switch {
	case err == nil:
	case wait.Err(bounded) != nil && wait.Err(ctx) == nil:
		return nil, fmt.Errorf("%w for %v: %v", ErrNoConnection, o.BeginTimeout, err) //nolint:errorlint // see ErrNoConnection
	default:
		return nil, err
	}
	if d.Name == "mysql" && !c.Session.Snapshot {
		known.noSnapshot.Do(func() {
			o.Logger.Warn("transactions are not at REPEATABLE READ: protected rows are read before they are written")
		})
	}

	fail.Point("dbtx/begun")
	t := &Tx{conn: c, raw: sqlfront.On(c), dialect: d, pool: pool, database: known, options: o, key: o.Key, keyless: o.Keyless}
	c.Session.Begun = time.Now()
	if known.sessions.Moved() {
		t.notePooler()
	}
	c.Watcher = t
	o.Memory.Use(c.Session.Server)
	t.ctx, t.cancel = context.WithCancel(context.WithValue(ctx, txKey{}, t))
	c.Done = t.ctx.Done()
	return t, nil
}

// use gives the transaction its front.
func (t *Tx) use(f front) {
	t.front = f
	t.reader = reader.New(f, t.conn, t.dialect, t.conn.Session, &t.database.catalogue, t.detached)
	t.journal = journal.New(t.reader.Facts, t.dialect.Name == "mysql")
	t.rows = protected.NewRows(t.reader.SameTable)
	t.judge = &evidence.Judge{
		Reader: t.reader, Rows: t.rows, Journal: t.journal, Memory: t.options.Memory, Poison: t.Poison,
	}
}

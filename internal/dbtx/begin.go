package dbtx

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/belaygo/belay/internal/dbtx/dialect"
	"github.com/belaygo/belay/internal/dbtx/pinned"
	"github.com/belaygo/belay/internal/dbtx/pipeline"
	"github.com/belaygo/belay/internal/fail"
)

// ErrNoConnection is returned by Begin when Options.BeginTimeout has passed without a
// connection from the pool or the database. It does not match context.DeadlineExceeded,
// because the caller's context has not ended.
var ErrNoConnection = errors.New("dbguard: no connection to the database")

// begin starts a guarded transaction on a connection of a pool. It needs a front.
func begin(ctx context.Context, pool *sql.DB, d dialect.Dialect, known *database, o Options) (*Tx, error) {
	o = o.withDefaults()
	o.Defers = o.Defers && known.defers()
	ctx, end := context.WithCancelCause(ctx)
	begun := false
	defer func() {
		if !begun {
			end(nil)
		}
	}()
	fail.Point("dbtx/before-begin")
	c, err := connect(ctx, pool, d, known, o, end)
	if err != nil {
		return nil, err
	}
	if d.Name == "mysql" && !c.Session.Snapshot {
		known.noSnapshot.Do(func() {
			o.Logger.Warn("transactions are not at REPEATABLE READ: protected rows are read before they are written")
		})
	}

	fail.Point("dbtx/begun")
	t := &Tx{conn: c, dialect: d, pool: pool, database: known, options: o, key: o.Key, keyless: o.Keyless}
	t.raw.Init(c)
	c.Session.Begun = time.Now()
	if known.sessions.Moved() {
		t.notePooler()
	}
	c.Watcher = t
	t.outer, t.cancel = ctx, end
	t.ctx = (*txContext)(t)
	c.Done = t.ctx.Done()
	if c.Deferring() {
		c.Limit(o.EndTimeout)
		c.Defer(pinned.Step{Statement: pipeline.Statement{Query: d.Begin}, Then: t.answered})
	} else {
		_ = t.answered(pipeline.Result{})
	}
	begun = true
	return t, nil
}

// answered is called once the server has begun the transaction. A connection that is dead by then may be one
// of another server, from before a failover.
func (t *Tx) answered(pipeline.Result) error {
	t.options.Memory.Use(t.conn.Session.Server)
	t.options.Begun(t.Server())
	return nil
}

// connect begins a transaction on a connection, within o.BeginTimeout if that is positive. end ends
// ctx.
func connect(ctx context.Context, pool *sql.DB, d dialect.Dialect, known *database, o Options, end context.CancelCauseFunc) (*pinned.Conn, error) {
	timeout := o.BeginTimeout
	if timeout <= 0 {
		return pinned.Begin(ctx, pool, d, &known.sessions, o.Family, o.Defers)
	}
	timer := time.AfterFunc(timeout, func() { end(ErrNoConnection) })
	c, err := pinned.Begin(ctx, pool, d, &known.sessions, o.Family, o.Defers)
	if timer.Stop() {
		return c, err
	}
	if end(ErrNoConnection); context.Cause(ctx) != ErrNoConnection { //nolint:errorlint // its own value
		return c, err // something else has ended ctx first
	}
	if err == nil {
		c.Discard() // ctx has ended just now
		err = errors.New("begin transaction")
	}
	// Of err only what it was about: see ErrNoConnection. Nobody has canceled anything.
	return nil, fmt.Errorf("%w for %v: %s", ErrNoConnection, timeout, strings.TrimSuffix(err.Error(), ": "+context.Canceled.Error()))
}

// use gives the transaction its front.
func (t *Tx) use(f front) {
	t.front = f
	t.reader.Init(f, t.conn, t.dialect, t.conn.Session, &t.database.catalogue, t)
	t.journal.Init(&t.reader, t.dialect.Name == "mysql")
	t.rows.Init(&t.reader)
	t.judge.Init(&t.reader, &t.rows, &t.journal, t.options.Memory, t)
}

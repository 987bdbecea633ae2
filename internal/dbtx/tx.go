package dbtx

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/belaygo/belay/internal/conflict"
	"github.com/belaygo/belay/internal/dbtx/dialect"
	"github.com/belaygo/belay/internal/dbtx/evidence"
	"github.com/belaygo/belay/internal/dbtx/journal"
	"github.com/belaygo/belay/internal/dbtx/pinned"
	"github.com/belaygo/belay/internal/dbtx/protected"
	"github.com/belaygo/belay/internal/dbtx/reader"
	"github.com/belaygo/belay/internal/sqlfront"
)

// Tx is a guarded transaction; see the package documentation. Its methods are
// safe for concurrent use. Its statements, as in any transaction, are not: MySQL
// takes one at a time.
type Tx struct {
	front   front
	conn    *pinned.Conn
	raw     sqlfront.Transaction // the connection as database/sql sees it
	outer   context.Context      // derived from the caller's
	cancel  context.CancelCauseFunc
	ctx     context.Context // carries the transaction
	dialect dialect.Dialect

	options  Options
	pool     *sql.DB
	rows     protected.Rows
	reader   reader.Reader
	journal  journal.Journal
	judge    evidence.Judge
	database *database
	xid      string   // on PostgreSQL, its number, known when it is about to be committed
	reported reported // what PostgreSQL has returned of it
	saved    bool     // it has had a savepoint
	marked   bool     // it has had the savepoint before its writes: see dialect.Session.MarksWrites
	routines routines
	reset    bool        // a statement has set the session's sql_mode, or may have
	swapped  atomic.Bool // the connection may have another session by now: see dialect.Swaps

	unsent atomic.Int64 // statements that gorm has built, and not sent

	mu       sync.Mutex
	key      string // that protects the rows which are named now
	keyless  bool   // none does
	ended    bool
	unknown  bool  // whether it was committed
	unsafe   error // why the evidence of a conflict may not be safe
	outvoted bool  // a group has refused to commit it, unless the server was leaving it
	poison   error
	unseen   error                                    // a statement has ended the transaction
	aborted  error                                    // PostgreSQL takes no statement but a ROLLBACK, to a savepoint perhaps
	settings []func(context.Context, *sql.Conn) error // for inNewTransaction
}

type txKey struct{}

// FromContext returns the transaction from whose context ctx is derived, or nil.
func FromContext(ctx context.Context) *Tx {
	t, _ := ctx.Value(txKey{}).(*Tx)
	return t
}

// txContext is the context of a transaction, which it carries.
type txContext Tx

func (c *txContext) Deadline() (deadline time.Time, ok bool) { return c.outer.Deadline() }
func (c *txContext) Done() <-chan struct{}                   { return c.outer.Done() }
func (c *txContext) Err() error                              { return c.outer.Err() }

func (c *txContext) Value(key any) any {
	if key == (txKey{}) {
		return (*Tx)(c)
	}
	return c.outer.Value(key)
}

// String is for those who print contexts: they must not read the transaction, which changes.
func (c *txContext) String() string { return fmt.Sprint(c.outer) + ".WithTransaction" }

// endless is a context that outlives the operation's and belongs to no transaction.
type endless Tx

func (*endless) Deadline() (deadline time.Time, ok bool) { return time.Time{}, false }
func (*endless) Done() <-chan struct{}                   { return nil }
func (*endless) Err() error                              { return nil }
func (c *endless) Value(key any) any                     { return outside{c.outer}.Value(key) }

// Context returns the context of the transaction.
func (t *Tx) Context() context.Context { return t.ctx }

// Behind reports whether the server may have been behind others of its cluster when the
// transaction began.
func (t *Tx) Behind() bool { return t.conn.Session.Behind }

// Server returns the server of the transaction. Behind a pooler it is certain after Commit.
func (t *Tx) Server() Server { return serverOf(t.conn.Session) }

// Begun returns when the transaction began, by this host's clock.
func (t *Tx) Begun() time.Time { return t.conn.Session.Begun }

// SeveralWriters reports whether other nodes of the server's cluster take writes, too: one that
// was committed there may undo the transaction.
func (t *Tx) SeveralWriters() bool { return t.conn.Session.Galera || t.conn.Session.Yields }

// OnRollback calls f unless the transaction is known to be committed: at its rollback,
// or at the rollback to an earlier savepoint. Functions are called in the reverse
// order.
func (t *Tx) OnRollback(f func()) { t.journal.OnRollback(f) }

// Coverage returns how far the writes so far are covered. Writes that a rollback to a
// savepoint has undone do not count.
func (t *Tx) Coverage() journal.Coverage { return t.journal.Coverage(t.rows.All()) }

// Conflict returns the weightiest conflict on a protected row so far, or nil. Its
// evidence is complete after Rollback.
func (t *Tx) Conflict() *conflict.Error {
	if all := t.Conflicts(); len(all) > 0 {
		return all[0]
	}
	return nil
}

// Conflicts returns the weightiest conflict on a row of each key so far, and on a claim under
// it, the weightiest of all first. Their evidence is complete after Rollback.
func (t *Tx) Conflicts() []*conflict.Error { return t.judge.Conflicts() }

// Unsafe returns why a failover may lose the row that a conflict has shown, or nil. It is
// known after Rollback.
func (t *Tx) Unsafe() error { return t.unsafe }

// Detached returns a context that outlives the operation's and belongs to no transaction.
func (t *Tx) Detached() (context.Context, context.CancelFunc) {
	return context.WithTimeout((*endless)(t), t.options.EndTimeout)
}

// exec runs a query that ends a transaction, on a separate context.
func (t *Tx) exec(c *pinned.Conn, query string) error {
	if c.Broken.Load() {
		return driver.ErrBadConn
	}
	c.Use()
	ctx, cancel := t.Detached()
	defer cancel()
	_, err := c.SQL().ExecContext(ctx, query)
	return err
}

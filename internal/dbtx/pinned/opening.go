package pinned

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"slices"
	"time"

	"github.com/belaygo/belay/internal/dbtx/dialect"
	"github.com/belaygo/belay/internal/dbtx/pipeline"
)

// An opening is what Belay does in a transaction before the program: BEGIN, looks at rows, a claim. Such
// statements wait for one whose result is needed, and are sent with it in one round trip. None of them
// commits: whatever becomes of them, the transaction can be begun anew.
type opening struct {
	pipe    pipeline.Pipeline // of the connection, nil if it has none, or is not to use it
	limit   time.Duration     // of a round trip, 0 = none
	waiting []Step            // the first one is BEGIN, until that is sent
	behind  []Step            // follow the statement that is sent with those that wait
	begun   bool              // BEGIN was sent
	over    bool
	failed  bool
}

// A Step is a statement of an opening.
type Step struct {
	pipeline.Statement
	Then func(pipeline.Result) error // takes its result, unless it is nil; an error fails the opening
}

// pipelineOf returns the pipeline of a connection, nil if it has none.
func pipelineOf(c *sql.Conn) (p pipeline.Pipeline) {
	_ = c.Raw(func(dc any) error {
		p = pipeline.Of(dc.(driver.Conn))
		return nil
	})
	return p
}

// Limit bounds the round trip that opens the transaction. 0 leaves that to the context.
func (c *Conn) Limit(d time.Duration) { c.opening.limit = d }

// Waits reports whether statements may wait: the connection has a pipeline, and the opening is not over.
func (c *Conn) Waits() bool { return c.opening.pipe != nil && !c.opening.over }

// Later adds statements to those that wait, if they may.
func (c *Conn) Later(steps ...Step) { c.opening.waiting = append(c.opening.waiting, steps...) }

// Behind adds statements that are sent behind the next one, if that returns no rows.
func (c *Conn) Behind(steps ...Step) { c.opening.behind = append(c.opening.behind, steps...) }

// LeftBehind drops the statements of Behind that were not sent, and reports whether there were any.
func (c *Conn) LeftBehind() bool {
	left := len(c.opening.behind) > 0
	c.opening.behind = nil
	return left
}

// Opened sends what waits. From now on nothing does.
func (c *Conn) Opened() {
	if c.Waits() {
		c.SQL()
		c.opening.over = true
	}
}

// Drop drops what waits, and reports whether that was all of the transaction.
func (c *Conn) Drop() bool {
	if !c.Waits() {
		return false
	}
	c.opening.waiting, c.opening.behind, c.opening.over = nil, nil, true
	return !c.opening.begun
}

// Unopened reports whether the opening has failed, by no fault of a statement that was sent with those
// that waited. The connection is closed, and the transaction has changed nothing.
func (c *Conn) Unopened() bool { return c.opening.failed }

// InTransaction reports whether the server is known to go on with the transaction. If not, it has to
// be asked.
func (c *Conn) InTransaction() bool {
	return c.opening.pipe != nil && !c.lent.Load() && c.opening.pipe.InTransaction()
}

// SQL returns the connection, for statements of Belay. What waited has been sent on it. If that has
// failed, it is closed.
func (c *Conn) SQL() *sql.Conn {
	if len(c.opening.waiting) > 0 {
		c.Watch(func() { _ = c.open(c.Watcher.Context(), nil) })
	}
	return c.conn
}

// exec executes a statement without rows, with those that wait.
func (c *Conn) exec(ctx context.Context, query string, args []any) (sql.Result, error) {
	if len(c.opening.waiting) == 0 {
		return c.conn.ExecContext(ctx, query, args...)
	}
	var rows int64
	with := &Step{pipeline.Statement{Query: query, Args: args}, func(r pipeline.Result) error {
		rows = r.Rows
		return nil
	}}
	if err := c.open(ctx, with); err != nil {
		return nil, err
	}
	return driver.RowsAffected(rows), nil
}

// open sends what waits, and a statement with it, unless that is nil. An error that is not the
// server's about this one leaves nothing to go on with: the connection is closed, and the server
// rolls back.
func (c *Conn) open(ctx context.Context, with *Step) error {
	o := &c.opening
	steps := o.waiting
	before := len(steps)
	o.waiting, o.begun = nil, true
	if with != nil {
		steps, o.behind = slices.Concat(steps, []Step{*with}, o.behind), nil
	}
	if o.limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.limit)
		defer cancel()
	}
	all := make([]pipeline.Statement, len(steps))
	for i := range steps {
		all[i] = steps[i].Statement
	}
	var done []pipeline.Result
	var err error
	failed := c.conn.Raw(func(any) error { // which would close the connection for some errors
		done, err = o.pipe.Send(ctx, all)
		return nil
	})
	for i, r := range done {
		if then := steps[i].Then; then != nil {
			failed = cmp.Or(failed, then(r))
		}
	}
	if failed == nil && (err == nil || with != nil && len(done) == before && dialect.FromServer(err)) {
		return err
	}
	o.failed = true
	c.Discard()
	return cmp.Or(failed, err)
}

package pinned

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/belaygo/belay/internal/dbtx/dialect"
	"github.com/belaygo/belay/internal/dbtx/pipeline"
)

// A prelude is what Belay does in a transaction before the program: BEGIN, looks at rows, a claim. Its
// statements wait for one whose result is needed, and are sent with it in one round trip. None of them
// commits: whatever becomes of them, the transaction can be begun anew.
type prelude struct {
	pipe    pipeline.Pipeline // of the connection, nil if it has none, or is not to use it
	limit   time.Duration     // of a round trip, 0 = none
	waiting []Step            // the first one is BEGIN, until that is sent
	behind  []Step            // follow the INSERT of Surround, until they are sent
	insert  bool              // that INSERT is to be sent, or was
	begun   bool              // BEGIN was sent
	others  int               // statements that are not Belay's own, apart from INSERTs of Surround
	over    bool
	err     error // by which it has failed
}

// A Step is a statement of a prelude.
type Step struct {
	pipeline.Statement
	Then func(pipeline.Result) error // takes its result, unless it is nil; an error fails the prelude
}

// ErrNoAnswer is returned when the server has not answered a prelude within its limit.
var ErrNoAnswer = errors.New("no answer from the database")

// pipelineOf returns the pipeline of a connection, nil if it has none.
func pipelineOf(c *sql.Conn) (p pipeline.Pipeline) {
	_ = c.Raw(func(dc any) error {
		p = pipeline.Of(dc.(driver.Conn))
		return nil
	})
	return p
}

// Limit bounds each round trip of the prelude: see [ErrNoAnswer].
func (c *Conn) Limit(d time.Duration) { c.prelude.limit = d }

// Deferring reports whether statements may wait: the connection has a pipeline, and the prelude is not
// over, and has not failed.
func (c *Conn) Deferring() bool {
	return c.prelude.pipe != nil && !c.prelude.over && c.prelude.err == nil
}

// Waiting reports whether statements wait.
func (c *Conn) Waiting() bool { return len(c.prelude.waiting) > 0 }

// Defer has statements wait, on a connection that is Deferring.
func (c *Conn) Defer(steps ...Step) { c.prelude.waiting = append(c.prelude.waiting, steps...) }

// Surround lets a statement wait that comes before an INSERT without RETURNING, which is to be sent next. The INSERT is
// sent with it, and others behind it.
func (c *Conn) Surround(before Step, behind ...Step) {
	c.Defer(before)
	c.prelude.behind, c.prelude.insert = behind, true
}

// EndSurround ends Surround. It reports whether the INSERT was not sent with the others. If so, those behind it are not sent.
func (c *Conn) EndSurround() (withheld bool) {
	c.prelude.insert = false
	return c.prelude.behind != nil
}

// Flush sends what waits. From now on nothing does. It returns the error by which the prelude has
// failed.
func (c *Conn) Flush() error {
	if c.Deferring() {
		_ = c.flush()
		c.prelude.over = true
	}
	return c.prelude.err
}

// OnlyClaims reports whether the only statements so far that are not Belay's own are INSERTs of Surround,
// which were sent with others.
func (c *Conn) OnlyClaims() bool { return c.prelude.others == 0 }

// Fail makes err the error by which the prelude has failed, if it has not yet.
func (c *Conn) Fail(err error) { c.prelude.err = cmp.Or(c.prelude.err, err) }

// Failed returns the error by which the prelude has failed, nil if it has not. That of a statement
// which was sent with it is not one.
func (c *Conn) Failed() error { return c.prelude.err }

// Drop drops what waits, and reports whether that was all of the transaction.
func (c *Conn) Drop() bool {
	if c.prelude.pipe == nil || c.prelude.over {
		return false
	}
	c.prelude.waiting, c.prelude.behind, c.prelude.over = nil, nil, true
	return !c.prelude.begun
}

// lately is how long the connection is taken for one that lives after it was used. It decides only
// whether the server is asked once more: a COMMIT on a dead connection has an outcome that nobody knows.
const lately = 20 * time.Millisecond

// InTransaction reports whether the server is known to go on with the transaction: it has said so,
// lately. If not, it has to be asked.
func (c *Conn) InTransaction() bool {
	used := time.Unix(0, c.usedAt.Load())
	return c.prelude.pipe != nil && !c.lent.Load() && time.Since(used) < lately && c.prelude.pipe.InTransaction()
}

// SQL returns the connection, for statements of Belay. What waited has been sent on it. If that has
// failed, it is closed.
func (c *Conn) SQL() *sql.Conn {
	_ = c.flush()
	return c.conn
}

// flush sends what waits.
func (c *Conn) flush() (err error) {
	if len(c.prelude.waiting) > 0 {
		c.Watch(func() { err = c.send(c.Watcher.Context(), nil) })
	}
	return err
}

// errTaken is the error of a second statement behind Surround. One of the two is not the INSERT, and what came
// before the INSERT no longer holds.
var errTaken = errors.New("dbguard: another statement came beside the INSERT of a claim")

// exec executes a statement without rows, with those that wait if it is the one behind Surround.
func (c *Conn) exec(ctx context.Context, query string, args []any) (sql.Result, error) {
	if c.prelude.insert && c.prelude.behind == nil {
		return nil, errTaken
	}
	if len(c.prelude.waiting) == 0 || c.prelude.behind == nil {
		if err := c.flush(); err != nil {
			return nil, err
		}
		return c.conn.ExecContext(ctx, query, args...)
	}
	var rows int64
	with := &Step{pipeline.Statement{Query: query, Args: args}, func(r pipeline.Result) error {
		rows = r.Rows
		return nil
	}}
	c.prelude.others--
	if err := c.send(ctx, with); err != nil {
		return nil, err
	}
	return driver.RowsAffected(rows), nil
}

// send sends what waits, and a statement with it, unless that is nil. An error that is not the
// server's about this one leaves nothing to go on with: the connection is closed, and the server
// rolls back.
func (c *Conn) send(ctx context.Context, with *Step) error {
	p := &c.prelude
	steps := p.waiting
	before := len(steps)
	p.waiting, p.begun = nil, true
	if with != nil {
		steps, p.behind = slices.Concat(steps, []Step{*with}, p.behind), nil
	}
	if p.limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, p.limit, ErrNoAnswer)
		defer cancel()
	}
	all := make([]pipeline.Statement, len(steps))
	for i := range steps {
		all[i] = steps[i].Statement
	}
	var done []pipeline.Result
	var err error
	failed := c.conn.Raw(func(any) error { // which would close the connection for some errors
		done, err = p.pipe.Send(ctx, all)
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
	p.err = cmp.Or(failed, err)
	if context.Cause(ctx) == ErrNoAnswer { //nolint:errorlint // its own value
		p.err = fmt.Errorf("begin transaction: %w for %v", ErrNoAnswer, p.limit) // nobody's context has ended
	}
	c.Discard()
	return p.err
}

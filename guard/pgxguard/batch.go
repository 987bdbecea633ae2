package pgxguard

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// batch are the results of a batch. Each query is sent when its result is asked for.
type batch struct {
	ctx    context.Context //nolint:containedctx // pgx's BatchResults take none
	t      *tx
	queue  []*pgx.QueuedQuery
	last   *rows // of the last result, nil if it has none
	closed bool
	err    error // the first one, of a statement or of the program
	failed bool  // a statement has
}

// SendBatch implements pgx.Tx.
func (t *tx) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	if t.done || t.s.t.Ending() {
		return pgx.FailedBatchResults(&pgx.Batch{}, pgx.ErrTxClosed)
	}
	t.s.t.Batch(1)
	return &batch{ctx: ctx, t: t, queue: b.QueuedQueries}
}

var (
	errBatchClosed = errors.New("pgxguard: the batch is closed")
	errNoResult    = errors.New("pgxguard: the batch has no more results")
)

// next returns the query whose result is asked for.
func (b *batch) next() (*pgx.QueuedQuery, error) {
	switch {
	case b.err != nil:
		return nil, b.err
	case b.closed:
		return nil, errBatchClosed
	case len(b.queue) == 0:
		return nil, errNoResult
	}
	return b.pop(), nil
}

// pop takes the next query. The rows of the one before are closed.
func (b *batch) pop() *pgx.QueuedQuery {
	if b.last != nil {
		b.last.Close()
		b.last = nil
	}
	q := b.queue[0]
	b.queue = b.queue[1:]
	return q
}

// Exec implements pgx.BatchResults.
func (b *batch) Exec() (tag pgconn.CommandTag, err error) {
	q, err := b.next()
	if err != nil {
		return tag, err
	}
	return b.exec(q)
}

func (b *batch) exec(q *pgx.QueuedQuery) (pgconn.CommandTag, error) {
	tag, err := b.t.Exec(b.ctx, q.SQL, q.Arguments...)
	b.fail(err)
	return tag, err
}

// Query implements pgx.BatchResults.
func (b *batch) Query() (pgx.Rows, error) { return b.query() }

// QueryRow implements pgx.BatchResults.
func (b *batch) QueryRow() pgx.Row {
	r, _ := b.query()
	return row{r}
}

func (b *batch) query() (*rows, error) {
	q, err := b.next()
	if err != nil {
		return failed(err), err
	}
	r, err := b.t.query(b.ctx, q.SQL, q.Arguments)
	b.fail(err)
	b.last, r.batch = r, b
	return r, err
}

// fail notes the error of a statement: the server executes none behind it.
func (b *batch) fail(err error) {
	b.failed = b.failed || err != nil
	b.note(err)
}

func (b *batch) note(err error) {
	if b.err == nil {
		b.err = err
	}
}

// Close implements pgx.BatchResults. It sends the queries that are left, until one fails, and
// calls their functions, until one returns an error.
func (b *batch) Close() error {
	if b.closed {
		return b.err
	}
	for !b.failed && len(b.queue) > 0 {
		f, left := b.queue[0].Fn, len(b.queue)
		if f != nil && b.err == nil {
			b.note(f(b))
		}
		if len(b.queue) == left { // nobody has asked for its result
			_, _ = b.exec(b.pop())
		}
	}
	if b.last != nil {
		b.last.Close()
	}
	b.closed = true
	b.t.s.t.Batch(-1)
	return b.err
}

// Tx implements pgx.BatchResults. No batch of an operation begins a transaction.
func (b *batch) Tx() pgx.Tx { return nil }

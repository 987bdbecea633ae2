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
	closed bool
	err    error // the first one
}

// SendBatch implements pgx.Tx.
func (t *tx) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	if t.done {
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
	q := b.queue[0]
	b.queue = b.queue[1:]
	return q, nil
}

// Exec implements pgx.BatchResults.
func (b *batch) Exec() (tag pgconn.CommandTag, err error) {
	q, err := b.next()
	if err != nil {
		return tag, err
	}
	tag, err = b.t.Exec(b.ctx, q.SQL, q.Arguments...)
	b.note(err)
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
	b.note(err)
	r.batch = b
	return r, err
}

func (b *batch) note(err error) {
	if b.err == nil {
		b.err = err
	}
}

// Close implements pgx.BatchResults. It sends the queries that are left, until one fails, and
// calls their functions.
func (b *batch) Close() error {
	if b.closed {
		return b.err
	}
	for b.err == nil && len(b.queue) > 0 {
		if f := b.queue[0].Fn; f != nil {
			left := len(b.queue)
			b.note(f(b))
			if b.err == nil && len(b.queue) == left {
				b.queue = b.queue[1:] // it has not asked for its result
			}
			continue
		}
		_, _ = b.Exec()
	}
	b.closed = true
	b.t.s.t.Batch(-1)
	return b.err
}

// Tx implements pgx.BatchResults. No batch of an operation begins a transaction.
func (b *batch) Tx() pgx.Tx { return nil }

package pinned

import (
	"context"
	"database/sql"
	"sync"
)

// A turn belongs to a statement from its admission until its transaction has noted its
// result, or to the end of the transaction. The connection takes one statement at a time
// anyway. Without turns an admitted statement could run after a COMMIT, a ROLLBACK, or an
// error with which the server has rolled back: it would be committed alone.
type turn struct {
	taken chan struct{}

	mu    sync.Mutex
	ended bool
	ctx   context.Context // nil until somebody waits for it
	end   context.CancelFunc
}

// until returns a context that ends with the transaction. Few statements need it.
func (t *turn) until() context.Context {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ctx == nil {
		if t.ctx, t.end = context.WithCancel(context.Background()); t.ended {
			t.end()
		}
	}
	return t.ctx
}

// refuse ends that context.
func (t *turn) refuse() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended = true; t.end != nil {
		t.end()
	}
}

// Take waits for the turn. If ctx or the transaction ends first, it returns ctx's error or
// sql.ErrTxDone. Otherwise call Give.
func (c *Conn) Take(ctx context.Context) error {
	select {
	case c.turn.taken <- struct{}{}:
		return nil
	default:
	}
	select {
	case c.turn.taken <- struct{}{}:
		return nil
	case <-c.turn.until().Done():
		return sql.ErrTxDone
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Give ends the turn.
func (c *Conn) Give() { <-c.turn.taken }

// Refuse cuts short the statement that runs, and refuses those that wait for their turn.
func (c *Conn) Refuse() { c.turn.refuse() }

// Close does so, and takes the turn.
func (c *Conn) Close() {
	c.Refuse()
	c.turn.taken <- struct{}{}
}

// within returns a context that ends with ctx, and with the transaction at the latest. The
// context of the operation does so already, and those of Belay's own reads may outlive it.
func (c *Conn) within(ctx context.Context, own bool) (context.Context, context.CancelFunc) {
	if done := ctx.Done(); own || done != nil && done == c.Done {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(c.turn.until(), cancel)
	return ctx, func() { stop(); cancel() }
}

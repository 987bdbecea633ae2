package sqlfront

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/belaygo/belay/internal/conflict"
	"github.com/belaygo/belay/internal/dbtx/pinned"
)

// ErrOrder is returned by the end of a nested transaction while one that was begun in it is
// open.
var ErrOrder = errors.New("dbguard: nested transactions end in the reverse order")

// A Handle is a pool whose statements run in the operation of their context. It is safe for
// concurrent use.
type Handle struct {
	pool func() (*sql.DB, error)
	of   func(context.Context) *Transaction
	mu   sync.Mutex
	db   *sql.DB // nil until it is asked for
}

// New returns a handle of the pool that pool returns. of returns the transaction of a context,
// nil if it has none.
func New(pool func() (*sql.DB, error), of func(context.Context) *Transaction) *Handle {
	return &Handle{pool: pool, of: of}
}

// DB returns the handle as a pool.
func (h *Handle) DB() *sql.DB {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.db == nil {
		h.db = sql.OpenDB(connector{h})
		h.db.SetMaxIdleConns(-1) // a connection is of one operation
	}
	return h.db
}

// Close closes the handle, not its pool.
func (h *Handle) Close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.db == nil {
		return nil
	}
	return h.db.Close()
}

// A Transaction is the guarded transaction of one operation, as statements of database/sql see
// it. It is safe for concurrent use.
type Transaction struct {
	conn *pinned.Conn

	mu     sync.Mutex
	tx     *sql.Tx
	ending bool
	saves  []string // names of the savepoints that are open
	seq    int
	open   map[*rows]bool // rows that are open
}

// On returns the transaction on a connection.
func On(conn *pinned.Conn) *Transaction { return &Transaction{conn: conn} }

// wholeKey is the key under which the context of the operation's own transaction carries it.
type wholeKey struct{}

// Tx returns the operation's transaction. It is always the same one. ctx carries the operation.
func (h *Handle) Tx(ctx context.Context, t *Transaction) (*sql.Tx, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.ending:
		return nil, sql.ErrTxDone
	case t.tx != nil:
		return t.tx, nil
	}
	ctx = context.WithValue(context.WithoutCancel(ctx), wholeKey{}, t) // database/sql would roll back at its end
	tx, err := h.DB().BeginTx(ctx, nil)                                // which sends nothing
	if err != nil {
		return nil, fmt.Errorf("begin transaction: %w", err)
	}
	t.tx = tx
	return tx, nil
}

// Open returns an error if a nested transaction is open, which its program has not ended.
func (t *Transaction) Open() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := len(t.saves); n > 0 {
		return fmt.Errorf("%w: a nested transaction was not ended", pinned.ErrTxControl)
	}
	return nil
}

// End closes the operation's *sql.Tx, with its rows and statements, and the rows of a Handle. It
// waits for statements that run, and sends nothing that could end the transaction.
func (t *Transaction) End() {
	t.mu.Lock()
	t.ending = true
	tx := t.tx
	t.mu.Unlock()
	if tx != nil {
		_ = tx.Rollback()
	}
	t.mu.Lock()
	left := slices.Collect(maps.Keys(t.open))
	t.mu.Unlock()
	for _, r := range left {
		_ = r.Close()
	}
}

// note notes that rows are open, or that they are closed.
func (t *Transaction) note(r *rows, open bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !open {
		delete(t.open, r)
		return
	}
	if t.open == nil {
		t.open = make(map[*rows]bool)
	}
	t.open[r] = true
}

func (t *Transaction) isEnding() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ending
}

// connector makes connections of a handle. It is not its Close that closes a *sql.DB.
type connector struct{ handle *Handle }

// Connect implements driver.Connector.
func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	if t, ok := ctx.Value(wholeKey{}).(*Transaction); ok {
		return &conn{t: t, whole: true}, nil
	}
	if t := c.handle.of(ctx); t != nil {
		if t.isEnding() {
			return nil, sql.ErrTxDone
		}
		return &conn{t: t}, nil
	}
	pool, err := c.handle.pool()
	if err != nil {
		return nil, err
	}
	return &outside{pool: pool}, nil
}

// Driver implements driver.Connector.
func (c connector) Driver() driver.Driver {
	pool, err := c.handle.pool()
	if err != nil {
		return nil
	}
	return pool.Driver()
}

// errOutside is returned for what carries no operation.
var errOutside = fmt.Errorf("%w: its context carries no operation", conflict.ErrOutside)

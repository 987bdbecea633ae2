package sqlfront

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/belaygo/belay/internal/background"
	"github.com/belaygo/belay/internal/conflict"
	"github.com/belaygo/belay/internal/dbtx/pinned"
)

var (
	// errOrder is returned by the end of a nested transaction while one that was begun in it is
	// open.
	errOrder = errors.New("dbguard: nested transactions end in the reverse order")
	// errNested is returned for a statement outside of the innermost transaction: that one's
	// rollback would undo it.
	errNested = errors.New("dbguard: a nested transaction is open: use it, or end it first")
)

// A Handle is a pool whose statements run in the operation of their context. It is safe for
// concurrent use.
type Handle struct {
	pool func() (*sql.DB, error)
	of   func(context.Context) *Transaction
	mu   sync.Mutex
	db   *sql.DB // nil until it is asked for
	shut bool
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
		if h.shut {
			_ = h.db.Close()
		}
	}
	return h.db
}

// Close closes the handle, not its pool.
func (h *Handle) Close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.shut = true
	if h.db == nil {
		return nil
	}
	return h.db.Close()
}

// A Transaction is the guarded transaction of one operation, as statements of database/sql see
// it. It is safe for concurrent use.
type Transaction struct {
	conn *pinned.Conn

	mu      sync.Mutex
	tx      *sql.Tx
	ending  bool
	saves   []string // names of the savepoints that are open
	seq     int
	open    map[any]func() // rows that are open, of any front, and what closes them
	other   Other
	batches int // that are open, of queries that were not sent, perhaps
}

// Init is called once, before all others.
func (t *Transaction) Init(conn *pinned.Conn) { t.conn = conn }

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

// Open returns an error if a nested transaction is open, which its program has not ended, or a
// batch.
func (t *Transaction) Open() error {
	t.mu.Lock()
	saves, batches, other := len(t.saves), t.batches, t.other
	t.mu.Unlock()
	switch {
	case saves > 0:
		return fmt.Errorf("%w: a nested transaction was not ended", pinned.ErrTxControl)
	case batches > 0:
		return fmt.Errorf("%w: a batch was not closed", pinned.ErrRowsOpen)
	case other != nil:
		return other.Check()
	}
	return nil
}

// Batch counts n more batches that are open.
func (t *Transaction) Batch(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.batches += n
}

// errStuck is returned by End if a statement does not end.
var errStuck = errors.New("dbguard: a statement of the operation does not end")

// End closes the operation's *sql.Tx, with its rows and statements, and the rows of a Handle. It
// waits for statements that run, for patience at most: database/sql takes a query for one that still
// runs after a panic in it, of a sql.Scanner for instance. End sends nothing that could end the
// transaction.
func (t *Transaction) End(patience time.Duration) error {
	t.mu.Lock()
	t.ending = true
	tx := t.tx
	t.mu.Unlock()
	var stuck error
	if tx != nil {
		stuck = within(patience, func() { _ = tx.Rollback() })
	}
	t.mu.Lock()
	left := slices.Collect(maps.Values(t.open))
	t.mu.Unlock()
	if len(left) == 0 {
		return stuck
	}
	return cmp.Or(stuck, within(patience, func() {
		for _, closes := range left {
			closes()
		}
	}))
}

// within runs f, and returns an error if it does not return in time. It goes on then.
func within(patience time.Duration, f func()) error {
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = background.Do(nil, "end a transaction", func() error {
			f()
			return nil
		})
	}()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-done:
		return nil
	case <-timer.C:
		return errStuck
	}
}

// Opened notes that rows are open. End closes them by that function.
func (t *Transaction) Opened(rows any, closes func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open == nil {
		t.open = make(map[any]func())
	}
	t.open[rows] = closes
}

// Closed notes that rows are closed.
func (t *Transaction) Closed(rows any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.open, rows)
}

// Conn returns the connection of the transaction.
func (t *Transaction) Conn() *pinned.Conn { return t.conn }

// An Other is what another front keeps with a transaction.
type Other interface {
	// Check returns an error if the transaction can't be committed, as far as the front knows.
	Check() error
}

// Other returns what another front keeps with the transaction, which begin returns the first
// time.
func (t *Transaction) Other(begin func() (Other, error)) (Other, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.ending:
		return nil, sql.ErrTxDone
	case t.other != nil:
		return t.other, nil
	}
	other, err := begin()
	if err != nil {
		return nil, err
	}
	t.other = other
	return other, nil
}

// Send is Send of the connection, for a statement of the innermost transaction. s is nil for the
// operation's own.
func (t *Transaction) Send(ctx context.Context, s *Savepoint, query string, args []driver.NamedValue, send func(context.Context, driver.Conn) (affected int64, rows bool, err error)) (*pinned.Raw, error) {
	if err := t.Innermost(s); err != nil {
		return nil, err
	}
	return t.conn.Send(ctx, query, args, send)
}

// Ending reports whether the operation has ended.
func (t *Transaction) Ending() bool {
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
		if t.Ending() {
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

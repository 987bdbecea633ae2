package reader

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/belaygo/belay/internal/dbtx/catalogue"
	"github.com/belaygo/belay/internal/dbtx/dialect"
	"github.com/belaygo/belay/internal/dbtx/protected"
	"github.com/belaygo/belay/internal/dbtx/statement"
)

// A Reader reads on a transaction's connection, for Belay. It is safe for concurrent
// use, if the connection is.
type Reader struct {
	Dialect dialect.Dialect
	Session dialect.Session
	catalogue.Tables

	through atomic.Pointer[access]
	first   access // that it begins with
	known   atomic.Pointer[catalogue.Cache]
	moved   atomic.Bool
	tx      transaction
	schemas sync.Map // table name → schema, of tables that are named without one
}

// access is how a reader reads.
type access struct {
	loader protected.Loader
	conn   catalogue.Conn
}

// A transaction gives each read a context of its own.
type transaction interface {
	Detached() (context.Context, context.CancelFunc)
	Deferring() bool
	DeferLook(build func() (query string, args []any, err error), there func(bool)) error
}

// Init is called once, before all others. q reads rows by a loader, and the catalogue on conn, which
// are of the transaction's connection.
func (q *Reader) Init(l protected.Loader, conn catalogue.Conn, d dialect.Dialect, s dialect.Session, known *catalogue.Cache, t transaction) {
	q.Dialect, q.Session, q.tx = d, s, t
	q.first = access{l, conn}
	q.through.Store(&q.first)
	q.known.Store(known)
	q.Tables = catalogue.Tables{Library: (*library)(q), Begun: time.Now()}
}

// library is a Reader as a catalogue.Library.
type library Reader

func (q *library) Known() *catalogue.Cache { return q.known.Load() }

func (q *library) Open() (context.Context, catalogue.Source, context.CancelFunc) {
	ctx, cancel := (*Reader)(q).Context()
	return ctx, (*Reader)(q).catalogue(), cancel
}

// Use makes q read on another connection from now on.
func (q *Reader) Use(l protected.Loader, conn catalogue.Conn) { q.through.Store(&access{l, conn}) }

func (q *Reader) access() *access { return q.through.Load() }

// Load reads a row. It returns nil if the row is not there.
func (q *Reader) Load(ctx context.Context, query protected.Query) (statement.Value, error) {
	return q.access().loader.Load(ctx, query)
}

// Move is called when a name without a schema may be that of another table from now on. q
// reads the descriptions of tables anew, and keeps them from other transactions.
func (q *Reader) Move() {
	q.moved.Store(true)
	q.known.Store(new(catalogue.Cache))
	q.schemas.Clear()
}

// MoveBack is called when a ROLLBACK TO may have undone a Move.
func (q *Reader) MoveBack() {
	if q.moved.Load() {
		q.Move()
	}
}

// catalogue returns the catalogue of the database.
func (q *Reader) catalogue() catalogue.Source {
	return catalogue.Source{Dialect: q.Dialect.Name, Conn: q.access().conn}
}

type ownKey struct{}

// Own reports whether ctx is that of a read by a Reader.
func Own(ctx context.Context) bool { return ctx.Value(ownKey{}) != nil }

// Context returns a context for reads.
func (q *Reader) Context() (context.Context, context.CancelFunc) {
	ctx, cancel := q.tx.Detached()
	return context.WithValue(ctx, ownKey{}, true), cancel
}

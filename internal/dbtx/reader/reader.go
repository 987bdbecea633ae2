package reader

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/belaygo/belay/internal/dbtx/catalogue"
	"github.com/belaygo/belay/internal/dbtx/dialect"
)

// A Reader reads on a transaction's connection, for Belay. It is safe for concurrent
// use, if the connection is.
type Reader struct {
	Dialect dialect.Dialect
	Session dialect.Session
	catalogue.Tables

	db      atomic.Pointer[gorm.DB] // a session on the connection
	known   atomic.Pointer[catalogue.Cache]
	moved   atomic.Bool
	context func() (context.Context, context.CancelFunc)
	schemas sync.Map // table name → schema, of tables that are named without one
}

// New returns a reader for db, a session on the connection. Each read has a context of
// its own, which ctx returns.
func New(db *gorm.DB, d dialect.Dialect, s dialect.Session, known *catalogue.Cache, ctx func() (context.Context, context.CancelFunc)) *Reader {
	q := &Reader{Dialect: d, Session: s, context: ctx}
	q.Use(db)
	q.known.Store(known)
	q.Tables = catalogue.Tables{Known: q.known.Load, Begun: time.Now(), Open: func() (context.Context, catalogue.Source, func()) {
		ctx, cancel := q.Context()
		return ctx, q.catalogue(), cancel
	}}
	return q
}

// Use has q read on another connection from now on. db is a session on it.
func (q *Reader) Use(db *gorm.DB) { q.db.Store(db) }

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
	return catalogue.Source{Dialect: q.Dialect.Name, Conn: q.db.Load().Statement.ConnPool}
}

type ownKey struct{}

// Own reports whether ctx is that of a read by a Reader.
func Own(ctx context.Context) bool { return ctx.Value(ownKey{}) != nil }

// Context returns a context for reads.
func (q *Reader) Context() (context.Context, context.CancelFunc) {
	ctx, cancel := q.context()
	return context.WithValue(ctx, ownKey{}, true), cancel
}

// DB returns a session for reads. It has no logger, which would show the values in them.
func (q *Reader) DB(ctx context.Context) *gorm.DB {
	s := q.db.Load().Session(&gorm.Session{NewDB: true, Context: ctx, SkipHooks: true, Logger: logger.Discard})
	s.Error = nil // that of a ROLLBACK TO which was refused: gorm leaves it in the db
	return s.Unscoped()
}

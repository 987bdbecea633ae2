package dbtx

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/internal/dbtx/dialect"
	"github.com/belaygo/belay/internal/dbtx/evidence"
	"github.com/belaygo/belay/internal/dbtx/journal"
	"github.com/belaygo/belay/internal/dbtx/pinned"
	"github.com/belaygo/belay/internal/dbtx/protected"
	"github.com/belaygo/belay/internal/dbtx/reader"
	"github.com/belaygo/belay/internal/dbtx/sqltext"
)

// Options adjust a guarded transaction. The zero value is useful.
type Options struct {
	// Alive is called before each statement and before COMMIT. When it returns
	// an error, the statement is refused with it. Default: never an error.
	Alive func() error
	// Held is called by Resolve where a row proves that nothing was committed. An
	// error says that another writer may have deleted the row, or made it again.
	// Default: never an error.
	Held func() error
	// BeginTimeout bounds the wait for a connection and the BEGIN. Default: only
	// the context does.
	BeginTimeout time.Duration
	// EndTimeout bounds COMMIT, ROLLBACK and the reads after a conflict, which
	// do not end with the context. Default 5 s.
	EndTimeout time.Duration
	// Key is the key of the lock. Conflicts and warnings name it. Default: none.
	Key string
	// Memory is shared by the attempts of one operation, so that a second one
	// does not hide what the first one saw. Default: one of its own.
	Memory *Memory
	// Logger receives warnings about the database and the keys. Default: none.
	Logger *slog.Logger
}

// Tx is a guarded transaction; see the package documentation. Its methods are
// safe for concurrent use. Its statements, as in any transaction, are not: MySQL
// takes one at a time.
type Tx struct {
	db      *gorm.DB
	conn    *pinned.Conn
	ctx     context.Context
	cancel  context.CancelFunc
	dialect dialect.Dialect
	plugin  *plugin

	translates bool // the db has gorm's option TranslateError
	alive      func() error
	held       func() error
	limit      time.Duration
	pool       *sql.DB
	key        string
	rows       *protected.Rows
	reader     *reader.Reader
	journal    *journal.Journal
	judge      *evidence.Judge
	logger     *slog.Logger
	xid        string // on PostgreSQL, its number, known when it is about to be committed

	ending sync.Mutex // held while the connection is used beside the statements

	mu       sync.Mutex
	ended    bool
	unknown  bool // whether it was committed
	poison   error
	aborted  error     // PostgreSQL takes no statement but a ROLLBACK, to a savepoint perhaps
	settings []setting // for afresh
}

type txKey struct{}

// FromContext returns the transaction whose context, or a descendant of it, ctx
// is; nil if there is none.
func FromContext(ctx context.Context) *Tx {
	t, _ := ctx.Value(txKey{}).(*Tx)
	return t
}

// Begin starts a guarded transaction on a connection of db's pool. The caller
// ends it with Commit or Rollback. Install must have been called on db.
func Begin(ctx context.Context, db *gorm.DB, o Options) (*Tx, error) {
	p, err := pluginOf(db)
	if err != nil {
		return nil, err
	}
	d, ok := dialect.Of(db.Name())
	if !ok {
		return nil, fmt.Errorf("%w: %s", dbguard.ErrDialect, db.Name())
	}
	pool, err := db.DB()
	if err != nil {
		return nil, fmt.Errorf("begin transaction: %w", err)
	}
	o = o.withDefaults()
	begin := ctx
	if o.BeginTimeout > 0 {
		var cancel context.CancelFunc
		begin, cancel = context.WithTimeout(ctx, o.BeginTimeout)
		defer cancel()
	}
	c, err := pinned.Begin(begin, pool, d, &p.sessions)
	if err != nil {
		return nil, err
	}
	if d.Name == "mysql" && !c.Session.Snapshot {
		p.noSnapshot.Do(func() {
			o.Logger.Warn("transactions are not at REPEATABLE READ: protected rows are read before they are written")
		})
	}

	t := &Tx{
		conn: c, dialect: d, plugin: p, pool: pool,
		translates: db.TranslateError,
		alive:      o.Alive, held: o.Held, limit: o.EndTimeout, key: o.Key, logger: o.Logger,
	}
	c.Watch(watcher{t})
	o.Memory.Use(c.Session.Server)
	t.ctx, t.cancel = context.WithCancel(context.WithValue(ctx, txKey{}, t))
	t.db = t.session(db)
	t.reader = reader.New(t.db, d, c.Session, &p.known, t.detached)
	t.journal = journal.New(t.reader.Facts, d.Name == "mysql")
	t.rows = protected.NewRows(t.reader.SameTable)
	t.judge = &evidence.Judge{
		Reader: t.reader, Rows: t.rows, Journal: t.journal, Memory: o.Memory, Key: o.Key, Poison: t.poisonWith,
	}
	return t, nil
}

func (o Options) withDefaults() Options {
	if o.Alive == nil {
		o.Alive = func() error { return nil }
	}
	if o.Held == nil {
		o.Held = func() error { return nil }
	}
	if o.EndTimeout <= 0 {
		o.EndTimeout = 5 * time.Second
	}
	if o.Memory == nil {
		o.Memory = new(Memory)
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// session returns a gorm session on the pinned connection. Without a context of
// its own a session shares its Statement, and setting the connection would
// change the user's db.
func (t *Tx) session(db *gorm.DB) *gorm.DB {
	s := db.Session(&gorm.Session{NewDB: true, Context: t.ctx})
	s.Statement.ConnPool = t.conn
	s.TranslateError = false // a translated error has lost what it was: learn translates it
	return s
}

// DB returns the session whose statements run in the transaction.
func (t *Tx) DB() *gorm.DB { return t.db }

// Context returns the context of the transaction.
func (t *Tx) Context() context.Context { return t.ctx }

// Poisoned returns nil unless the transaction can't be committed: then an error that
// matches ErrPoisoned and unwraps to the cause.
func (t *Tx) Poisoned() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return poisoned(cmp.Or(t.poison, t.aborted))
}

func poisoned(cause error) error {
	if cause == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", dbguard.ErrPoisoned, cause)
}

// fit reports why no further statement may run, if so.
func (t *Tx) fit() error {
	t.mu.Lock()
	ended, poison := t.ended, t.poison
	t.mu.Unlock()
	switch {
	case ended:
		return sql.ErrTxDone
	case poison != nil:
		return poisoned(poison)
	}
	return t.alive()
}

// admit refuses a statement that may not run. The reads that judge a conflict run
// whatever has become of the lease.
func (t *Tx) admit(ctx context.Context, query string) ([]sqltext.Statement, error) {
	if reader.Own(ctx) {
		return nil, nil
	}
	if err := t.fit(); err != nil {
		return nil, err
	}
	statements := t.dialect.Statements(query)
	return statements, admissible(t.dialect, statements)
}

// learn notes what the error of a statement, as the connection has it, means for the
// transaction.
func (t *Tx) learn(err error) {
	t.doom(err)
	if t.dialect.Aborts && dialect.FromServer(err) {
		t.mu.Lock()
		t.aborted = cmp.Or(t.aborted, err)
		t.mu.Unlock()
	}
}

// doom poisons the transaction if an error says that it must not go on.
func (t *Tx) doom(err error) {
	if err != nil && t.poisons(err) {
		t.poisonWith(err)
	}
}

// abortedBy replaces the driver's error by the conflict that was made of it.
func (t *Tx) abortedBy(c *dbguard.Conflict) {
	t.conn.Settle() // the error may have come with the rows
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.aborted != nil {
		t.aborted = c
	}
}

// poisons reports whether err leaves a transaction that must not go on.
func (t *Tx) poisons(err error) bool {
	return t.dialect.Poisons(err) || t.conn.Session.RolledBack(err)
}

func (t *Tx) poisonWith(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.poison == nil {
		t.poison = err
	}
}

// OnRollback has f called unless the transaction is known to be committed: at
// its rollback, or that to a savepoint set before. Functions are called in the
// reverse order.
func (t *Tx) OnRollback(f func()) { t.journal.OnRollback(f) }

// Coverage returns how far the writes so far are covered. Writes that a rollback to a
// savepoint has undone do not count.
func (t *Tx) Coverage() journal.Coverage { return t.journal.Coverage(t.rows.All()) }

// Conflict returns the weightiest conflict on a protected row so far, or nil. Its
// evidence is complete after Rollback.
func (t *Tx) Conflict() *dbguard.Conflict { return t.judge.Conflict() }

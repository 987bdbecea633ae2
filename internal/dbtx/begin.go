package dbtx

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/dbtx/dialect"
	"github.com/belaygo/belay/internal/dbtx/evidence"
	"github.com/belaygo/belay/internal/dbtx/journal"
	"github.com/belaygo/belay/internal/dbtx/pinned"
	"github.com/belaygo/belay/internal/dbtx/protected"
	"github.com/belaygo/belay/internal/dbtx/reader"
	"github.com/belaygo/belay/internal/fail"
	"github.com/belaygo/belay/internal/gormfront"
	"github.com/belaygo/belay/internal/wait"
)

// ErrNoConnection is returned by Begin when Options.BeginTimeout has passed without a
// connection from the pool or the database. It does not match context.DeadlineExceeded,
// because the caller's context has not ended.
var ErrNoConnection = errors.New("dbguard: no connection to the database")

// Begin starts a guarded transaction on a connection of db's pool. The caller
// ends it with Commit or Rollback. Install must have been called on db.
func Begin(ctx context.Context, db *gorm.DB, o Options) (*Tx, error) {
	p, ok := db.Plugins[pluginName].(*plugin)
	if !ok {
		return nil, errors.New("dbguard: not installed on this db")
	}
	d, ok := dialect.Of(db.Name()) // a second db that was opened with the same gorm.Config may have changed it
	if !ok {
		return nil, fmt.Errorf("dbguard: no support for the database %q", db.Name())
	}
	pool, err := db.DB()
	if err != nil {
		return nil, fmt.Errorf("begin transaction: %w", err)
	}
	known := p.of(pool)
	o = o.withDefaults()
	begin := ctx
	if o.BeginTimeout > 0 {
		var cancel context.CancelFunc
		begin, cancel = context.WithTimeout(ctx, o.BeginTimeout)
		defer cancel()
	}
	fail.Point("dbtx/before-begin")
	c, err := pinned.Begin(begin, pool, d, &known.sessions)
	switch {
	case err == nil:
	case wait.Err(begin) != nil && wait.Err(ctx) == nil:
		return nil, fmt.Errorf("%w for %v: %v", ErrNoConnection, o.BeginTimeout, err) //nolint:errorlint // see ErrNoConnection
	default:
		return nil, err
	}
	if d.Name == "mysql" && !c.Session.Snapshot {
		known.noSnapshot.Do(func() {
			o.Logger.Warn("transactions are not at REPEATABLE READ: protected rows are read before they are written")
		})
	}

	fail.Point("dbtx/begun")
	t := &Tx{
		conn: c, dialect: d, pool: pool, database: known, options: o,
		key: o.Key, keyless: o.Keyless,
	}
	c.Session.Begun = time.Now()
	if known.sessions.Moved() {
		t.notePooler()
	}
	c.Watcher = t
	o.Memory.Use(c.Session.Server)
	t.ctx, t.cancel = context.WithCancel(context.WithValue(ctx, txKey{}, t))
	c.Done = t.ctx.Done()
	t.front = gormfront.New(t.session(db), db.TranslateError)
	t.reader = reader.New(t.front, c, d, c.Session, &known.catalogue, t.detached)
	t.journal = journal.New(t.reader.Facts, d.Name == "mysql")
	t.rows = protected.NewRows(t.reader.SameTable)
	t.judge = &evidence.Judge{
		Reader: t.reader, Rows: t.rows, Journal: t.journal, Memory: o.Memory, Poison: t.Poison,
	}
	return t, nil
}

// session returns a gorm session on the pinned connection. Without a context of
// its own a session shares its Statement, and setting the connection would
// change the user's db.
func (t *Tx) session(db *gorm.DB) *gorm.DB {
	s := db.Session(&gorm.Session{NewDB: true, Context: t.ctx})
	s.Statement.ConnPool = t.conn
	s.TranslateError = false // a translated error has lost its cause: learn translates it
	return s
}

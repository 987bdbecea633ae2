package dbguard

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"reflect"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/logger"
)

// Outcome is what became of a transaction.
type Outcome int

const (
	Unresolved   Outcome = iota // it could not be found out
	Committed                   // the rows are as the transaction made them
	NotCommitted                // they are provably not
)

func (o Outcome) String() string {
	switch o {
	case Unresolved:
		return "unresolved"
	case Committed:
		return "committed"
	case NotCommitted:
		return "not committed"
	}
	return fmt.Sprintf("Outcome(%d)", int(o))
}

// Resolve finds out what became of the transaction after Commit has returned
// ErrCommitUnknown. It ends the old session on the server, so that nothing of it
// can take effect later, and reads the protected rows that the transaction wrote
// on another connection, waiting, until ctx ends, for what still holds them. If the
// database is another server by then, as behind a balancer or after a failover, the
// outcome is Unresolved; if it is the same one and was restarted, it is not.
//
// A row is recognised by its primary key, its version and the columns that were
// written, be it from a struct or a map, apart from fractions, expressions and what
// gorm serializes. A column that the database keeps otherwise than it was given (a
// text that it cuts, a number given as a text with other digits) makes the outcome
// Unresolved, as does a row that only an upsert, raw SQL or an update without a
// version has written. A primary key other than the row's tells that it is another
// row only if both are integers and gorm had not to guess: on a cluster, MySQL tells
// no more than the first of several, and a key that was kept out of the insert stays
// in memory as it was. Otherwise it makes the outcome Unresolved.
//
// Alive must hold until then: only while nobody else may write the rows does their
// state prove anything. So must Held, unless a row still has the version that an
// update or a delete found: a row may be gone, or as it was to be, by another's
// doing. Unresolved is the answer otherwise, and the error says why. The functions
// of OnRollback are called unless the outcome is Committed.
func (t *Tx) Resolve(ctx context.Context) (Outcome, error) {
	t.mu.Lock()
	unknown, writes := t.unknown, t.writes
	t.mu.Unlock()
	if !unknown {
		return Unresolved, errors.New("dbguard: resolve commit: its outcome is not in doubt")
	}
	o, err := t.findOut(ctx, writes)
	t.resolved(o)
	if cause := context.Cause(ctx); err != nil && cause != nil && !errors.Is(err, cause) {
		err = fmt.Errorf("%w: %w", cause, err) // a driver may only say that the connection is bad
	}
	if err != nil {
		return o, fmt.Errorf("resolve commit: %w", err)
	}
	return o, nil
}

// resolved ends the doubt.
func (t *Tx) resolved(o Outcome) {
	t.mu.Lock()
	was := t.unknown
	t.unknown = false
	if was && o == Committed {
		t.undo = nil
	}
	t.mu.Unlock()
	if was {
		t.undoAll()
	}
}

func (t *Tx) findOut(ctx context.Context, writes []write) (Outcome, error) {
	if len(writes) == 0 {
		return Committed, nil // it has changed nothing
	}
	images := imagesOf(writes)
	if len(images) == 0 {
		return Unresolved, errors.New("no protected row was written by an insert or a versioned update")
	}
	c, err := t.reconnect(ctx)
	if err != nil {
		return Unresolved, err
	}
	defer func() { _ = c.Close() }()
	if t.dialect.kill != nil {
		if err := t.dialect.kill(ctx, c, t.conn.session); err != nil {
			return Unresolved, err
		}
	}
	o, old, err := t.examineImages(ctx, c, images)
	if err == nil {
		err = t.alive()
	}
	if err == nil && !old {
		err = t.held()
	}
	if err != nil {
		return Unresolved, err
	}
	return o, nil
}

// examineImages compares the rows. old means that one still has its old version, which
// nobody could have brought back.
func (t *Tx) examineImages(ctx context.Context, c *sql.Conn, images []image) (found Outcome, old bool, err error) {
	db := t.db.Session(&gorm.Session{NewDB: true, Context: outside{ctx}, SkipHooks: true, Logger: logger.Discard})
	db.Statement.ConnPool = primary{c}
	for _, img := range images {
		o, err := t.examineImage(db, img)
		if err != nil {
			return Unresolved, false, err
		}
		if o == Unresolved || found != Unresolved && o != found {
			return Unresolved, false, fmt.Errorf("a row of %s is neither as it was nor as the transaction made it", img.row.table)
		}
		found = o
		old = old || o == NotCommitted && !img.inserted
	}
	return found, old, nil
}

// outside is a context that belongs to no guarded transaction.
type outside struct{ context.Context }

func (o outside) Value(key any) any {
	if key == (txKey{}) {
		return nil
	}
	return o.Context.Value(key)
}

// reconnect returns a connection to the server that had the transaction. On another
// one of a cluster the number of its session is anybody's, its locks are not seen,
// and what it has committed may not have come yet.
func (t *Tx) reconnect(ctx context.Context) (*sql.Conn, error) {
	return connect(ctx, t.pool, func(c *sql.Conn) error {
		if t.dialect.ask == nil {
			return nil
		}
		s, err := t.dialect.ask(ctx, c)
		if err == nil && s.server != t.conn.session.server {
			err = fmt.Errorf("the database is another server now, %s instead of %s", s.server, t.conn.session.server)
		}
		return err
	})
}

// primary is a connection of the transaction's own pool. Because it could commit,
// plugins that spread reads over replicas take it for a transaction and leave it
// alone.
type primary struct{ *sql.Conn }

func (primary) Commit() error   { return sql.ErrTxDone }
func (primary) Rollback() error { return sql.ErrTxDone }

// examineImage reads a row by its key, locking, and compares. NOWAIT, and again:
// a read that this side gives up would go on waiting at the server.
func (t *Tx) examineImage(db *gorm.DB, img image) (Outcome, error) {
	lock := "FOR UPDATE NOWAIT"
	if t.dialect.name == "sqlite" {
		lock = ""
	}
	for {
		row, err := img.row.load(db.Unscoped(), img.schema.ModelType, lock)
		switch {
		case err == nil:
			return img.compare(db.Statement.Context, row), nil
		case mysqlNumber(err) == erParse && lock != "FOR UPDATE": // an old server
			lock = "FOR UPDATE"
			continue
		case !isLocked(err):
			return Unresolved, err
		}
		if err := pause(db.Statement.Context); err != nil {
			return Unresolved, fmt.Errorf("another transaction holds the row: %w", err)
		}
	}
}

// pause lets a moment pass, unless ctx ends.
func pause(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(20 * time.Millisecond):
		return nil
	}
}

// compare tells whether a row is as the transaction made it.
func (i image) compare(ctx context.Context, row reflect.Value) Outcome {
	switch {
	case !row.IsValid() && i.deleted:
		return Committed
	case !row.IsValid():
		return i.absent()
	}
	for n, v := range i.key {
		f := i.schema.PrimaryFields[n]
		switch now := fieldOf(ctx, f, row); {
		case equal(now, i.row.kept(f, v)):
		case i.guessed || !isNumber(now) || !isNumber(v):
			return Unresolved
		default:
			return i.absent()
		}
	}
	recognised := i.inserted && len(i.key) > 0
	if f := versionOf(i.schema); f != nil && i.version != 0 {
		switch version := versionIn(ctx, f, row); {
		case version == i.from && !i.inserted:
			return NotCommitted
		case version != i.version || i.deleted:
			return Unresolved
		}
		recognised = true
	}
	for _, c := range i.columns {
		if !c.sameAs(fieldOf(ctx, c.field, row)) {
			return Unresolved
		}
		recognised = true
	}
	if !recognised {
		return Unresolved
	}
	return Committed
}

// isNumber reports whether v is an integer, which has but one form. 0 may stand for
// one that the database makes.
func isNumber(v any) bool {
	v = indirect(v)
	if _, ok := v.(driver.Valuer); ok {
		return false
	}
	rv := reflect.ValueOf(v)
	return (rv.CanInt() || rv.CanUint()) && !rv.IsZero()
}

// absent tells what it means that the row is not there.
func (i image) absent() Outcome {
	if i.inserted {
		return NotCommitted
	}
	return Unresolved
}

package dbtx

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/belaygo/belay/internal/dbtx/dialect"
	"github.com/belaygo/belay/internal/dbtx/journal"
	"github.com/belaygo/belay/internal/dbtx/protected"
	"github.com/belaygo/belay/internal/wait"
)

// patience is how long a row may be locked before the session that had the transaction is
// killed. A server rolls back when it detects that a client has disconnected, and so does a
// pooler.
const patience = time.Second

// endSession kills the transaction's session if it still has the transaction. Behind a
// pooler the session may be another client's by now, so on MySQL and MariaDB it is killed
// only if a row remains locked, and if it has been idle since the COMMIT was sent.
//
// On PostgreSQL this runs only where the transaction's number decides nothing: under a role that may
// not identify the server, for which no number is read, and after a restart. A reset of the
// statistics looks like a restart and leaves the session alive. The session is killed by its pid and
// the time of its start, which no other session shares, even after a restart.
func (t *Tx) endSession(ctx context.Context, c *sql.Conn, now dialect.Session, restarted bool, images []journal.Image) error {
	switch {
	case t.dialect.Name != "mysql" && t.database.pooled.Load() && !restarted:
		return errors.New("a pooler gave the transaction to a session that may be another client's")
	case t.dialect.Name != "mysql":
		return t.dialect.EndSession(ctx, c, t.conn.Session)
	case restarted:
		return nil
	case now.ID == t.conn.Session.ID:
		t.notePooler() // the one that looks for the outcome has it
	}
	free, err := t.awaitRows(ctx, c, images)
	if free || err != nil || t.database.pooled.Load() {
		return err
	}
	err = t.atServer(ctx, c, func() error { return t.dialect.EndSession(ctx, c, t.conn.Session) })
	if errors.Is(err, dialect.ErrStranger) {
		t.notePooler()
		return nil // the rows are free once the transaction is over
	}
	return err
}

// awaitRows reports whether all rows are unlocked, or become so soon, which shows that the
// transaction is over.
func (t *Tx) awaitRows(ctx context.Context, c *sql.Conn, images []journal.Image) (free bool, err error) {
	from := t.front.On(c)
	for end := time.Now().Add(patience); ; {
		locked := false
		for _, img := range images {
			err := t.atServer(ctx, c, func() error {
				_, err := from.Load(outside{ctx}, protected.Query{Row: img.Row, Model: img.Model, Lock: "FOR UPDATE NOWAIT"})
				return err
			})
			if dialect.IsSyntax(err) { // an old server, which has no NOWAIT
				return false, nil
			}
			if locked = dialect.IsLocked(err); locked {
				break
			}
			if err != nil {
				return false, fmt.Errorf("look whether the transaction is over: %w", err)
			}
		}
		if !locked || time.Now().After(end) {
			return !locked, nil
		}
		if err := wait.Sleep(ctx, dialect.PollInterval, nil); err != nil {
			return false, err
		}
	}
}

// notePooler logs, once, that transactions of one connection are in different sessions.
func (t *Tx) notePooler() {
	if t.database.pooled.CompareAndSwap(false, true) {
		t.options.Logger.Warn("the transactions of one connection are in different sessions, as behind a pooler: " +
			"what an operation sets in its session, and the locks of a session, are of the next client")
	}
}

package dbtx

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	"github.com/belaygo/belay/internal/dbtx/dialect"
	"github.com/belaygo/belay/internal/dbtx/pinned"
	"github.com/belaygo/belay/internal/fail"
)

// ErrCommitUnknown is returned by Commit when it is not known whether the transaction was
// committed.
var ErrCommitUnknown = errors.New("dbguard: outcome of the commit is unknown")

// Commit waits for the statement that runs, calls Alive once more, and commits. Statements
// that come later get sql.ErrTxDone. If the context of the transaction ends during the wait,
// the transaction is rolled back. An error means that nothing was committed,
// unless it matches ErrCommitUnknown. Such an error unwraps to that of the COMMIT; call
// Resolve for the outcome. Rollback treats the transaction as not committed.
func (t *Tx) Commit() error {
	if err := t.conn.Take(t.ctx); err != nil {
		t.Rollback()
		return err
	}
	unfit, err := t.finish()
	if unfit {
		t.Rollback()
	}
	return err
}

// finish commits, and gives the turn back. A transaction that is unfit is to be rolled back.
func (t *Tx) finish() (unfit bool, err error) {
	defer t.conn.Give()
	t.conn.Watch(t.settle)
	if err := t.usable(); err != nil {
		return true, err
	}
	if !t.end() {
		return false, sql.ErrTxDone
	}
	t.conn.Refuse()
	defer t.cancel(nil)
	if err := t.raw.End(t.options.EndTimeout); err != nil {
		t.conn.Abort()
		t.journal.Undo()
		return false, fmt.Errorf("commit: %w", err)
	}
	returned := false
	defer func() {
		if !returned { // the driver has panicked
			t.setUnknown()
		}
	}()
	t.conn.Watch(func() { err = t.commit() })
	returned = true
	return false, err
}

// settle poisons the transaction if what its statements have left shows that it must not be committed.
func (t *Tx) settle() {
	if t.conn.SettleAll() {
		t.Poison(pinned.ErrRowsOpen)
	} else {
		_ = t.LeaveRoutine() // which poisons
	}
	if err := t.raw.Open(); err != nil {
		t.Poison(err)
	}
	if t.conn.Session.Sampled && t.Poisoned() == nil {
		t.unscattered() // before the lease is checked: nothing comes between that and the COMMIT
	}
}

// commit sends the COMMIT.
func (t *Tx) commit() error {
	if err := t.intact(); err != nil {
		t.conn.Discard()
		t.journal.Undo()
		return fmt.Errorf("commit: %w", err)
	}
	fail.Point("dbtx/before-commit")
	t.conn.Session.Sent = time.Now()
	err := t.exec(t.conn, "COMMIT")
	if err == nil {
		fail.Point("dbtx/committed")
		t.free()
		return nil
	}
	t.conn.Discard()
	// pgx calls a connection bad that broke while the COMMIT was on its way.
	badConn := errors.Is(err, driver.ErrBadConn)
	if t.conn.Session.Proven().NotCommitted(err) && (!badConn || !t.dialect.Aborts) {
		t.journal.Undo()
		return fmt.Errorf("commit: %w", t.deferred(err))
	}
	t.outvoted = dialect.IsRefused(err)
	t.setUnknown()
	return commitUnknownError{err}
}

// setUnknown notes that it is not known whether the transaction was committed.
func (t *Tx) setUnknown() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.unknown = true
}

// commitUnknownError is ErrCommitUnknown with the error of the COMMIT.
type commitUnknownError struct{ cause error }

func (e commitUnknownError) Error() string        { return ErrCommitUnknown.Error() + ": " + e.cause.Error() }
func (e commitUnknownError) Is(target error) bool { return target == ErrCommitUnknown }
func (e commitUnknownError) Unwrap() error        { return e.cause }

// Rollback ends the transaction without effect: it interrupts a running statement, and later
// statements get sql.ErrTxDone. It completes the evidence of its conflicts. If the server
// does not acknowledge it, the connection is closed, which has the same effect. After the end
// Rollback does nothing, except that it calls the functions of OnRollback if the outcome of
// the commit has remained unknown.
func (t *Tx) Rollback() {
	if !t.end() {
		t.resolved(NotCommitted)
		return
	}
	t.cancel(nil) // interrupts a statement that sends rows
	t.conn.Close()
	defer t.conn.Give()
	defer t.journal.Undo()
	t.conn.Watch(t.rollback)
	t.free()
}

// rollback sends the ROLLBACK, and completes the evidence.
func (t *Tx) rollback() {
	if t.raw.End(patience) != nil {
		t.conn.Abort()
	}
	t.conn.CloseRows()
	_ = t.LeaveRoutine()
	fail.Point("dbtx/before-rollback")
	if !t.conn.Drop() && t.exec(t.conn, "ROLLBACK") != nil {
		t.conn.Discard()
	}
	fail.Point("dbtx/rolled-back")
	if err := t.judge.Complete(t.inNewTransaction); t.dialect.Barrier != nil {
		t.unsafe = err
	}
}

// free gives the connection back to the pool, with autocommit as it was. A connection that may have
// another session is closed: what is remembered of it is not of that one.
func (t *Tx) free() {
	if t.swapped.Load() {
		t.conn.Discard()
		return
	}
	if t.conn.Session.HoldsBack() && t.exec(t.conn, "SET autocommit = 1") != nil {
		t.conn.Discard()
		return
	}
	t.conn.Free()
}

// intact returns an error if the transaction was undone: see [dialect.Session] for Galera and
// for a member of a MySQL group. It also returns one if PostgreSQL would execute a COMMIT as a
// ROLLBACK, as it does after any error, even one behind unread rows. intact notes the number
// of the transaction, by which Resolve finds its outcome, and its session: see [Tx.atEnd].
func (t *Tx) intact() error {
	if s := t.conn.Session; t.marked || s.Yields && t.saved && !s.Sampled {
		err := t.exec(t.conn, "RELEASE SAVEPOINT "+dialect.First)
		if dialect.IsNoSavepoint(err) {
			err = t.unmarked(err)
		}
		return err
	}
	if !t.dialect.Aborts {
		return nil
	}
	ctx, cancel := t.Detached()
	defer cancel()
	now, err := t.atEnd(ctx)
	t.xid = now.Number
	if err != nil || now.Own {
		return err
	}
	if err := t.inside(); err != nil {
		return err
	}
	return t.pooled(ctx)
}

// unscattered poisons the transaction if the connection has left its session without an error.
func (t *Tx) unscattered() {
	here, err := t.stillHere()
	t.Learn(err)
	if err == nil && !here {
		err = t.scattered()
	}
	if err != nil {
		t.Poison(err)
	}
}

// unmarked returns the error of a transaction without the savepoint that it was given, which missing is
// about. A node of Galera may have undone it. If that is not proven, its statements may have been executed
// in several sessions, each committed alone.
func (t *Tx) unmarked(missing error) error {
	ctx, cancel := t.Detached()
	defer cancel()
	t.conn.Use()
	if s := t.conn.Session; s.Galera && s.LosesItself(ctx, t.conn.SQL()) {
		return fmt.Errorf("%w: %w", dialect.ErrUndone, missing)
	}
	return t.scattered()
}

// scattered notes that the connection has left the session of the transaction, and returns the error.
func (t *Tx) scattered() error {
	t.database.sessions.Scatter()
	t.swapped.Store(true) // so that nobody gets the connection
	return t.endedUnseen(fmt.Errorf("%w: the connection has been given another session, or a statement has ended the transaction: "+
		"what was written may be committed in part", ErrTxControl))
}

// stillHere reports whether the session has the transaction, on MySQL or MariaDB: see [dialect.Session].
func (t *Tx) stillHere() (bool, error) {
	if t.conn.Session.Marked() {
		err := t.exec(t.conn, "RELEASE SAVEPOINT "+dialect.First)
		if dialect.IsNoSavepoint(err) {
			return false, nil
		}
		return err == nil, err
	}
	if t.conn.Broken.Load() {
		return false, driver.ErrBadConn
	}
	t.conn.Use()
	ctx, cancel := t.Detached()
	defer cancel()
	return dialect.InTransaction(ctx, t.conn.SQL())
}

// inside returns an error if the connection has left the session of the transaction without an error,
// as behind a pooler that gives each statement any session. Only a transaction without a number may
// be none.
func (t *Tx) inside() error {
	if t.xid != "" || !t.conn.Session.Numbers || !t.journal.WroteRows() {
		return nil
	}
	err := t.exec(t.conn, "SAVEPOINT "+dialect.First)
	if dialect.IsOutside(err) {
		err = t.endedUnseen(fmt.Errorf("%w: the connection has been given another session: what was written may be committed in part", ErrTxControl))
	}
	return err
}

// pooled notes that a pooler has given the transaction to another session than the one that
// was read. Since then the server may have been restarted or replaced.
func (t *Tx) pooled(ctx context.Context) error {
	t.notePooler()
	if !t.conn.Session.Numbers {
		return nil
	}
	s, err := t.dialect.ReadSession(ctx, t.conn.SQL())
	if err == nil {
		s.Begun = t.conn.Session.Begun
		t.conn.Session = s
	}
	return err
}

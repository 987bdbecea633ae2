package dbtx

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/belaygo/belay/internal/dbtx/dialect"
	"github.com/belaygo/belay/internal/dbtx/sqltext"
)

// routineSavepoint is set before a statement of MySQL or MariaDB that may call a routine
// which ends the transaction: a procedure that commits, rolls back, or alters a table. The
// end of a transaction removes its savepoints, so the transaction is still the same one if
// the savepoint can be released afterwards. PostgreSQL ends no transaction of its caller.
const routineSavepoint = "belay_routine"

// routines watches statements that may call such a routine. Its fields except undone
// belong to the holder of the turn.
type routines struct {
	running bool                                   // a savepoint is set, and not yet released
	enter   func(context.Context, *sql.Conn) error // called before each such statement
	leave   func(context.Context, *sql.Conn) error // called after each that has not ended the transaction
	undone  atomic.Bool                            // the server has rolled back
}

// AroundRoutines makes enter be called in the transaction before a statement that may end
// it by a routine, and leave after one that has not. If the statement commits, so are
// enter's writes.
func (t *Tx) AroundRoutines(enter, leave func(context.Context, *sql.Conn) error) {
	t.routines.enter, t.routines.leave = enter, leave
}

// Unseen returns nil, or an error that matches ErrTxControl if a routine has ended the
// transaction, or a pooler. Some of its writes may be committed, though the transaction was rolled
// back.
func (t *Tx) Unseen() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.unseen
}

// enterRoutine prepares for statements, of which one may end the transaction unseen.
func (t *Tx) enterRoutine(statements []sqltext.Statement) error {
	if t.dialect.Name != "mysql" || !slices.ContainsFunc(statements, sqltext.Statement.Opaque) {
		return nil
	}
	err := t.beside(t.routines.enter)
	if err == nil {
		err = t.exec(t.conn, "SAVEPOINT "+routineSavepoint)
		t.Learn(err)
	}
	if err != nil {
		t.doom(err)
		t.Poison(err)
		return fmt.Errorf("prepare for a routine: %w", err)
	}
	t.saved, t.routines.running = true, true
	return nil
}

// LeaveRoutine checks that a statement which may have ended the transaction has not. No
// rows may be open.
func (t *Tx) LeaveRoutine() error {
	if !t.routines.running {
		return nil
	}
	t.routines.running = false
	if t.routines.undone.Load() {
		return nil
	}
	err := t.exec(t.conn, "RELEASE SAVEPOINT "+routineSavepoint)
	t.Learn(err)
	if dialect.IsNoSavepoint(err) {
		err = fmt.Errorf("%w: a routine has ended the transaction: what was written may be committed in part", ErrTxControl)
		_ = t.endedUnseen(err)
	}
	if err == nil {
		err = t.beside(t.routines.leave)
	}
	if err != nil {
		t.doom(err)
		t.Poison(err)
	}
	return err
}

// endedUnseen notes, and returns, the error of a transaction that has ended before its time.
func (t *Tx) endedUnseen(err error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.unseen = err
	return err
}

// beside runs f, if there is one, on the connection.
func (t *Tx) beside(f func(context.Context, *sql.Conn) error) error {
	if f == nil {
		return nil
	}
	ctx, cancel := t.Detached()
	defer cancel()
	t.conn.Use()
	return f(ctx, t.conn.SQL())
}

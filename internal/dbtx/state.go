package dbtx

import (
	"cmp"
	"database/sql"
	"errors"
	"fmt"

	"github.com/belaygo/belay/internal/conflict"
	"github.com/belaygo/belay/internal/dbtx/dialect"
)

// ErrPoisoned is returned when an earlier failure has made the transaction unfit, so
// that it can only be rolled back. It comes with that failure.
var ErrPoisoned = errors.New("dbguard: transaction can only be rolled back")

// Poisoned returns nil, or, if the transaction cannot be committed, an error that
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
	return fmt.Errorf("%w: %w", ErrPoisoned, cause)
}

// usable reports why no further statement may run, if so.
func (t *Tx) usable() error {
	t.mu.Lock()
	ended, poison := t.ended, t.poison
	t.mu.Unlock()
	switch {
	case ended:
		return sql.ErrTxDone
	case poison != nil:
		return poisoned(poison)
	}
	return t.options.Alive()
}

// Learn records the consequences of a statement's error, as the connection has it, for
// the transaction.
func (t *Tx) Learn(err error) {
	if dialect.Swaps(err) {
		t.swapped.Store(true)
		t.Poison(err)
	}
	t.learn(err)
}

// learn is Learn for an error that may be Belay's own.
func (t *Tx) learn(err error) {
	t.doom(err)
	if t.dialect.Aborts && dialect.FromServer(err) {
		t.mu.Lock()
		t.aborted = cmp.Or(t.aborted, err)
		t.mu.Unlock()
	}
}

// doom poisons the transaction if it must not continue after err. If a table was altered,
// the remembered facts of all tables are dropped.
func (t *Tx) doom(err error) {
	if dialect.IsAltered(err) {
		t.database.catalogue.Forget()
	}
	if err != nil && (t.dialect.Poisons(err) || t.rolledBack(err) || t.endedBy(err)) {
		if dialect.FromServer(err) {
			t.routines.undone.Store(true)
		}
		t.Poison(err)
	}
}

// rolledBack reports whether err is a lock wait that has undone the transaction. It is
// false during the end, which does not depend on it.
func (t *Tx) rolledBack(err error) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.ended && t.conn.Session.RolledBack(err)
}

// endedBy reports whether SQLite has ended the transaction as it refused a row: later
// statements would be committed alone. Within a transaction it refuses a BEGIN.
func (t *Tx) endedBy(err error) bool {
	if t.dialect.Name != "sqlite" || !dialect.IsConstraint(err) || t.hasEnded() || t.exec(t.conn, "BEGIN") != nil {
		return false
	}
	_ = t.exec(t.conn, "ROLLBACK")
	return true
}

// abortedBy replaces the driver's error, which aborted the transaction, by its
// conflict.
func (t *Tx) abortedBy(c *conflict.Error) {
	t.conn.Settle() // the error may have come with the rows
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.aborted != nil {
		t.aborted = c
	}
}

// Poison keeps the transaction from being committed.
func (t *Tx) Poison(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.poison = cmp.Or(t.poison, err)
}

// end marks the transaction as ended. It reports whether it was not before.
func (t *Tx) end() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	was := t.ended
	t.ended = true
	return !was
}

func (t *Tx) hasEnded() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ended
}

// refused drops the marked statement if the database has refused it. Any other error
// came after its execution: for example, gorm could not read its result.
func (t *Tx) refused(err error) {
	if dialect.FromServer(err) {
		t.journal.Forget()
	}
}

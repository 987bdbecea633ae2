package guard

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/dbtx"
)

// A Change says what to do to rows, as data: Insert, Update, or several of them as
// one, and which messages to Send. Apply runs it as an operation of its own, Run as a part of one. The zero Change
// does nothing. A Change may be applied again, but not by two callers at a time, as it
// fills the rows that it was made with.
type Change struct {
	steps []step
	sends sending // the last step
}

// all returns the steps in their order.
func (c Change) all() []step {
	if len(c.sends.makes) == 0 {
		return c.steps
	}
	return append(slices.Clip(c.steps), c.sends)
}

// step is what a Change does to one row, or its messages. What it changes in memory it undoes when
// the transaction is rolled back, so that it can run again.
type step interface {
	protect(t *dbtx.Tx) error
	run(ctx context.Context, t *dbtx.Tx, tx *gorm.DB) error
}

// All returns a Change that makes changes in their order, in one transaction: all of
// them or none. Messages are sent after all the changes.
func All(changes ...Change) Change {
	var all Change
	for _, c := range changes {
		all.steps = append(all.steps, c.steps...)
		all.sends.makes = append(all.sends.makes, c.sends.makes...)
	}
	return all
}

// Run makes the change inside an operation, with the ctx and tx that the operation
// got or what it derived from them. The key of the operation protects the rows.
func (c Change) Run(ctx context.Context, tx *gorm.DB) error {
	t := dbtx.FromContext(ctx)
	if t == nil {
		return errOutsideDo
	}
	steps := c.all()
	for _, s := range steps { // all of them before the first write
		if err := s.protect(t); err != nil {
			return err
		}
	}
	if tx != t.DB() || ctx != t.Context() {
		tx = tx.WithContext(ctx) // the operation has derived its own
	}
	for _, s := range steps {
		if err := s.run(ctx, t, tx); err != nil {
			return err
		}
	}
	return nil
}

// inserts reports whether a step inserts a row.
func inserts(s step) bool {
	f, ok := s.(foldable)
	return ok && f.inserts() != nil
}

// look protects the rows that the Change inserts, before it is made. It returns an error if the prelude has failed:
// what is wrong with the rows Run reports.
func (c Change) look(t *dbtx.Tx) error {
	for _, s := range c.steps {
		if !inserts(s) {
			continue
		}
		if err := s.protect(t); !t.Deferring() {
			return err
		}
	}
	return nil
}

// Insert returns a Change that inserts row, a struct. The key protects the row by
// the one unique index whose columns are set in row; if there are several, name one
// with Protects. It is an error if the database has inserted none, as a trigger may have it,
// or if a hook made it an upsert, which no repeat fails. After a failure row is as it was; what
// it points to is not copied.
func Insert[T any](row *T) Change { return Change{steps: []step{insertion[T]{row}}} }

type insertion[T any] struct{ row *T }

func (w insertion[T]) protect(t *dbtx.Tx) error {
	if err := checkRow(w.row); err != nil {
		return err
	}
	return t.ProtectNew(w.row)
}

func (w insertion[T]) run(_ context.Context, t *dbtx.Tx, tx *gorm.DB) error {
	before := *w.row
	t.OnRollback(func() { *w.row = before })
	made := tx.Create(w.row)
	if err := refusesRepeats(t, made); err != nil {
		return err
	}
	if made.RowsAffected == 0 && !made.DryRun {
		return fmt.Errorf("guard: no row of %s was inserted: a trigger or a rule of the database has left it out", made.Statement.Table)
	}
	return nil
}

// refusesRepeats returns the error of an INSERT, or one that undoes it if the database would not
// refuse it for a row that is there.
func refusesRepeats(t *dbtx.Tx, made *gorm.DB) error {
	if made.Error != nil {
		return made.Error
	}
	if _, upserts := made.Statement.Clauses["ON CONFLICT"]; !upserts {
		return nil
	}
	err := fmt.Errorf("guard: the INSERT into %s has an ON CONFLICT clause, by a hook, a plugin or a session: a repeat would not be refused", made.Statement.Table)
	t.Poison(err)
	return err
}

// Update returns a Change that loads the row with row's primary key into row, lets
// change alter it, and saves it if nobody else has updated it since: T needs a field
// of type dbguard.Version. The key protects the row. When row comes with a version,
// that version is expected, and ErrStale is returned if it is old; change can't alter
// it, nor may it alter the primary key. Associations are not saved. After a failure
// row is as it was.
//
// All columns are saved as row has them: what a hook masks when it is loaded, or what a driver
// rounds, as that of MySQL a FLOAT with interpolateParams=true, is saved so. A field that GORM does
// not read is saved only if it is set.
//
// change may be called several times, with the row loaded anew: when the database has
// rolled an attempt back for a deadlock, or when another caller has updated a row first
// that came without a version (see Apply). It must not alter anything but the row.
//
// Update prevents lost updates. It does not make a repeated request harmless: only a
// unique row for the request does.
func Update[T any](row *T, change func(*T) error) Change {
	return Change{steps: []step{update[T]{row, change}}}
}

type update[T any] struct {
	row    *T
	change func(*T) error
}

func (w update[T]) protect(t *dbtx.Tx) error {
	if err := checkRow(w.row); err != nil {
		return err
	}
	if w.change == nil {
		return errors.New("guard: Update with a nil change")
	}
	return t.ProtectPrimary(w.row)
}

func (w update[T]) run(ctx context.Context, t *dbtx.Tx, tx *gorm.DB) error {
	m, err := parse(tx, w.row)
	if err != nil {
		return err
	}
	before := *w.row
	t.OnRollback(func() { *w.row = before })
	expected := m.version(ctx, &before)
	came := expected != 0
	if err := m.load(ctx, tx, w.row); err != nil {
		return refused(err, came)
	}
	if !came {
		expected = m.version(ctx, w.row)
	}
	if err := w.change(w.row); err != nil {
		return err
	}
	if err := m.restore(ctx, w.row, &before, expected); err != nil {
		return err
	}
	return refused(m.whole(tx).Updates(w.row).Error, came)
}

// broughtError is the error of a statement on a row that came with a version.
type broughtError struct{ error }

func (e broughtError) Unwrap() error { return e.error }

// refused returns the error of an Update's statement. came tells whether its row came with
// a version.
func refused(err error, came bool) error {
	if err == nil || !came {
		return err
	}
	return broughtError{err}
}

// brought reports whether an operation ended with the error of an Update whose row came
// with a version.
func brought(err error) bool {
	_, ok := errors.AsType[broughtError](err)
	return ok
}

var errOutsideDo = errors.New("guard: a Change must be run by Apply, or inside an operation with its ctx and tx")

func checkRow[T any](row *T) error {
	switch {
	case row == nil:
		return errors.New("guard: row is nil")
	case reflect.TypeFor[T]().Kind() != reflect.Struct:
		return fmt.Errorf("guard: row is a %T, not a pointer to a struct", row)
	}
	return nil
}

package guard

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/belaygo/belay/dbguard"
)

var errOutsideDo = errors.New("guard: Insert and Update must be run by Do, with the ctx and tx it gives")

// Insert returns an operation that inserts row, a struct. The key protects the
// row by the one unique index whose columns are set in row; if there are
// several, name one with Protects. After a failure row is as it was; what it
// points to is not copied.
func Insert[T any](row *T) Op { return ready(insertion[T]{row}) }

type insertion[T any] struct{ row *T }

func (w insertion[T]) do(ctx context.Context, tx *gorm.DB) error {
	t, err := inDo(ctx, w.row)
	if err != nil {
		return err
	}
	if err := t.ProtectNew(w.row); err != nil {
		return err
	}
	before := *w.row
	t.OnRollback(func() { *w.row = before })
	return within(ctx, t, tx).Create(w.row).Error
}

// Update returns an operation that loads the row with row's primary key into
// row, lets change alter it, and saves it if nobody else has updated it since:
// T needs a field of type dbguard.Version. The key protects the row. When row
// comes with a version, it is that version that is expected, and ErrStale if it
// is old; change can't alter it, nor may it alter the primary key. Associations
// are not saved. After a failure row is as it was.
//
// change is called again, with the row loaded anew, when the database has rolled
// the first attempt back for a deadlock, or, in an operation without the lock (see
// DBOnly), when another caller has updated a row that came without a version: it must
// not alter anything but the row.
//
// Update prevents lost updates. It does not make a request harmless that comes
// again: only a unique row for the request does.
func Update[T any](row *T, change func(*T) error) Op { return ready(update[T]{row, change}) }

type update[T any] struct {
	row    *T
	change func(*T) error
}

func (w update[T]) do(ctx context.Context, tx *gorm.DB) error {
	t, err := inDo(ctx, w.row)
	if err != nil {
		return err
	}
	if w.change == nil {
		return errors.New("guard: Update with a nil change")
	}
	tx = within(ctx, t, tx)
	m, err := parse(tx, w.row)
	if err != nil {
		return err
	}
	if err := t.ProtectPrimary(w.row); err != nil {
		return err
	}

	before := *w.row
	t.OnRollback(func() { *w.row = before })
	expected := m.version(ctx, &before)
	if err := m.load(ctx, tx, w.row); err != nil {
		return err
	}
	if expected == 0 {
		expected = m.version(ctx, w.row)
	} else if c, ok := ctx.Value(callKey{}).(*call); ok {
		c.brought = true
	}
	if err := w.change(w.row); err != nil {
		return err
	}
	if err := m.restore(ctx, w.row, &before, expected); err != nil {
		return err
	}
	return tx.Select("*").Omit(clause.Associations).Updates(w.row).Error
}

// within returns tx with ctx, which it has already unless the operation was
// called by another.
func within(ctx context.Context, t *dbguard.Tx, tx *gorm.DB) *gorm.DB {
	if tx == t.DB() && ctx == t.Context() {
		return tx
	}
	return tx.WithContext(ctx)
}

// inDo returns the transaction of the operation that runs, and checks its row.
func inDo[T any](ctx context.Context, row *T) (*dbguard.Tx, error) {
	t := dbguard.FromContext(ctx)
	switch {
	case t == nil:
		return nil, errOutsideDo
	case row == nil:
		return nil, errors.New("guard: row is nil")
	case reflect.TypeFor[T]().Kind() != reflect.Struct:
		return nil, fmt.Errorf("guard: row is a %T, not a pointer to a struct", row)
	}
	return t, nil
}

package promises_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/memlock"
)

// TestOperationCarriesItsLease: an acquire of the same key inside an operation is
// nested in its lease, and the operation's context has the caller's values and end.
func TestOperationCarriesItsLease(t *testing.T) {
	type name struct{}
	locker, err := lock.New(memlock.New(), lock.Config{})
	wantNil(t, err)
	defer locker.Close(bg)
	db := testdb.OpenSQLite(t, filepath.Join(t.TempDir(), "a.db"))
	g, err := guard.New(db, locker, guard.Config{Service: "s"})
	wantNil(t, err)
	defer g.Close(bg)

	ctx, cancel := context.WithCancel(context.WithValue(bg, name{}, "value"))
	err = g.Do(ctx, "k", func(ctx context.Context, _ *gorm.DB) error {
		nested, err := locker.TryAcquire(ctx, "k")
		wantNil(t, err)
		wantNil(t, nested.Release(bg))
		if v := ctx.Value(name{}); v != "value" {
			t.Errorf("value is %v", v)
		}
		cancel()
		<-ctx.Done()
		wantIs(t, context.Cause(ctx), context.Canceled)
		return ctx.Err()
	})
	wantIs(t, err, context.Canceled)
}

// TestTwoInOneLease: two operations that share the lease of their caller do not exclude each
// other. That the slower one is refused is no lock failure.
func TestTwoInOneLease(t *testing.T) {
	t.Parallel()
	eachServer(t, func(e *env) {
		lease, update := e.inLease()
		err := update(func() { wantNil(e.t, update(func() {})) })
		if err == nil || errors.Is(err, guard.ErrIntercepted) {
			e.t.Errorf("error is %v, want a conflict", err)
		}
		wantNil(e.t, lease.Release(bg))
		e.wantNoEvent()
	})
}

// TestTwoInAReleasedLease: if their caller has released it, they exclude each other.
func TestTwoInAReleasedLease(t *testing.T) {
	t.Parallel()
	eachServer(t, func(e *env) {
		lease, update := e.inLease()
		wantNil(e.t, update(func() {
			wantNil(e.t, lease.Release(bg))
			wantIs(e.t, update(func() {}), guard.ErrBusy)
		}))
		e.wantNoEvent()
	})
}

// inLease returns a lease, and what takes one of a row in its context, and calls between after the
// row was read.
func (e *env) inLease() (lease *lock.Lease, update func(between func()) error) {
	e.t.Helper()
	e.create(&Stock{ID: 1, Left: 9})
	locker, err := lock.New(memlock.New(), lock.Config{})
	wantNil(e.t, err)
	g, err := guard.New(e.db, locker, guard.Config{Service: "s", Publisher: &e.Events})
	wantNil(e.t, err)
	e.t.Cleanup(func() { wantNil(e.t, errors.Join(g.Close(bg), locker.Close(bg))) })
	lease, err = locker.Acquire(bg, "sku:1")
	wantNil(e.t, err)
	return lease, func(between func()) error {
		return g.Do(lease.Context(), "sku:1", func(_ context.Context, tx *gorm.DB) error {
			s := e.stockIn(tx, 1)
			between()
			return tx.Model(&s).Update("left", s.Left-1).Error
		}, guard.Protects(&Stock{ID: 1}))
	}
}

package guard_test

import (
	"context"
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

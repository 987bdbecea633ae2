package promises_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
)

// TestOperationOfContext: Tx and Request find the transaction and the request of an operation by
// its context, in a savepoint, too, and nothing outside.
func TestOperationOfContext(t *testing.T) {
	t.Parallel()
	e := onSQLite(t)
	var all []context.Context
	look := func(serves bool) guard.Op {
		return func(ctx context.Context, _ *gorm.DB) error {
			all = append(all, ctx)
			wantNil(t, guard.Tx(ctx).Create(&Order{No: "1"}).Error)
			if r, ok := guard.Request(ctx); ok != serves || ok && r.Key() != request("1").Key() {
				t.Errorf("the request is %v, %t, want %t", r, ok, serves)
			}
			return errors.New("roll back")
		}
	}
	_ = e.Do(bg, "order:1", look(false))
	_ = e.Do(bg, "order:1", look(true), guard.For(request("1")))
	_ = e.Do(bg, "order:1", func(ctx context.Context, _ *gorm.DB) error { return e.Do(ctx, "order:1", look(true)) }, guard.For(request("1")))
	_ = e.DoSQL(bg, "order:1", func(ctx context.Context, _ *sql.Tx) error { return look(false)(ctx, nil) })
	if n := e.count(&Order{}); n != 0 {
		t.Errorf("%d orders are there, want none: Tx is not the operation's transaction", n)
	}
	if len(all) == 0 || guard.Tx(all[0]).Create(&Order{No: "2"}).Error == nil {
		t.Error("Tx writes after the operation has ended")
	}
	if _, ok := guard.Request(bg); ok || guard.Tx(bg) != nil {
		t.Error("there is an operation outside")
	}
}

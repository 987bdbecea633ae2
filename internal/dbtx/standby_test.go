package dbtx_test

import (
	"context"
	"testing"
	"time"

	"github.com/belaygo/belay/internal/dbtx"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
)

// TestResolveAwaitsTheStandby is the same on PostgreSQL. A delete shows it: who looks
// for a row that is gone writes nothing, and so waits for no standby.
func TestResolveAwaitsTheStandby(t *testing.T) {
	db := testdb.OpenPostgres(t, teststack.StartPostgres(t, "standby"))
	prepare(t, db)
	wantNil(t, db.Create(&Stock{ID: 1, Left: 5}).Error)
	tx := begin(t, db, dbtx.Options{EndTimeout: time.Second})
	wantNil(t, tx.Protect(&Stock{ID: 1}))
	wantNil(t, tx.DB().Delete(&Stock{ID: 1, Version: 1}).Error)
	testdb.SetStandby(t, db, "nobody")
	wantIs(t, tx.Commit(), dbtx.ErrCommitUnknown)
	ctx, cancel := context.WithTimeout(bg, time.Second)
	defer cancel()
	o, err := tx.Resolve(ctx)
	if o != dbtx.Unresolved {
		t.Errorf("resolved as %v", o)
	}
	wantIs(t, err, context.DeadlineExceeded)
}

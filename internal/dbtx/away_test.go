package dbtx_test

import (
	"context"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/dbtx"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/testwait"
)

type resolved struct {
	outcome dbtx.Outcome
	err     error
}

// TestResolveAwaitsTheDatabase: a database that takes no connections when the answer to
// a COMMIT is missed is read as soon as it takes some.
func TestResolveAwaitsTheDatabase(t *testing.T) {
	for _, tt := range []struct {
		name string
		want dbtx.Outcome
	}{{"executed", dbtx.Committed}, {"not executed", dbtx.NotCommitted}} {
		t.Run(tt.name, func(t *testing.T) {
			eachLink(t, func(t *testing.T, _, db *gorm.DB, k *testdb.Link) {
				tx := begin(t, db, dbtx.Options{})
				wantNil(t, tx.Protect(&Order{No: "a"}))
				wantNil(t, tx.DB().Create(&Order{No: "a"}).Error)
				k.Away.Store(true)
				k.After.Store(tt.want == dbtx.Committed)
				k.Before.Store(tt.want == dbtx.NotCommitted)
				wantIs(t, tx.Commit(), dbtx.ErrCommitUnknown)
				k.After.Store(false)
				k.Before.Store(false)
				done := make(chan resolved, 1)
				go func() {
					o, err := tx.Resolve(bg)
					done <- resolved{o, err}
				}()
				testwait.Until(t, "it tries again to connect", func() bool { return k.Resets.Load() > 10 || len(done) > 0 })
				k.Away.Store(false)
				if r := <-done; r.outcome != tt.want {
					t.Errorf("resolved as %v, %v, want %v", r.outcome, r.err, tt.want)
				}
			})
		})
	}
}

// TestResolveGivesUp: a database that does not come back is tried until ctx ends, and the
// error says both.
func TestResolveGivesUp(t *testing.T) {
	eachLink(t, func(t *testing.T, _, db *gorm.DB, k *testdb.Link) {
		tx := begin(t, db, dbtx.Options{})
		wantNil(t, tx.Protect(&Order{No: "a"}))
		wantNil(t, tx.DB().Create(&Order{No: "a"}).Error)
		k.Away.Store(true)
		k.After.Store(true)
		wantIs(t, tx.Commit(), dbtx.ErrCommitUnknown)
		ctx, cancel := context.WithTimeout(bg, 500*time.Millisecond)
		defer cancel()
		o, err := tx.Resolve(ctx)
		if o != dbtx.Unresolved {
			t.Errorf("resolved as %v", o)
		}
		wantIs(t, err, context.DeadlineExceeded)
		k.Away.Store(false)
		k.After.Store(false)
	})
}

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

// TestResolveOnTheWriter: what a server shows that takes no writes now may be missing on the
// one that does. It may take writes again in time.
func TestResolveOnTheWriter(t *testing.T) {
	server := startMariaDB(t)
	db := testdb.OpenMySQL(t, server.DSN())
	prepare(t, db)
	t.Cleanup(func() { closePool(t, db) })

	tx := committedUnanswered(t, server, db, "a")
	wantNil(t, db.Exec("SET GLOBAL read_only = ON").Error)
	ctx, cancel := context.WithTimeout(bg, 500*time.Millisecond)
	defer cancel()
	o, err := tx.Resolve(ctx)
	if o != dbtx.Unresolved {
		t.Errorf("resolved as %v, %v", o, err)
	}
	wantIs(t, err, context.DeadlineExceeded)

	tx = committedUnanswered(t, server, db, "b")
	asked := shown(t, db)
	ctx, cancel = context.WithTimeout(bg, time.Minute)
	defer cancel()
	done := make(chan resolved, 1)
	go func() {
		o, err := tx.Resolve(ctx)
		done <- resolved{o, err}
	}()
	testwait.Until(t, "it asks again", func() bool { return shown(t, db) > asked+4 || len(done) > 0 })
	wantNil(t, db.Exec("SET GLOBAL read_only = OFF").Error)
	if r := <-done; r.outcome != dbtx.Committed {
		t.Errorf("resolved as %v, %v", r.outcome, r.err)
	}
}

// committedUnanswered inserts an order and misses the answer to the COMMIT, which takes
// effect.
func committedUnanswered(t *testing.T, server *mariaDB, db *gorm.DB, no string) *dbtx.Tx {
	t.Helper()
	tx := beginHasty(t, db, &Order{No: no})
	wantNil(t, tx.Protect(&Order{No: no}))
	wantNil(t, tx.DB().Create(&Order{No: no}).Error)
	stop := server.DelayLog(t, time.Second)
	wantIs(t, tx.Commit(), dbtx.ErrCommitUnknown)
	stop()
	return tx
}

// shown returns how often the server was asked for its variables.
func shown(t *testing.T, db *gorm.DB) (n int) {
	t.Helper()
	var name string
	wantNil(t, db.Raw("SHOW GLOBAL STATUS LIKE 'Com_show_variables'").Row().Scan(&name, &n))
	return n
}

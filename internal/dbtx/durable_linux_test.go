package dbtx_test

import (
	"context"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/dbtx"
	"github.com/belaygo/belay/internal/testdb"
)

// TestCommittedSurvivesACrash: without a binary log InnoDB shows a row before its
// log is written, and the disk stalls just then.
func TestCommittedSurvivesACrash(t *testing.T) {
	server := startMariaDB(t)
	db := testdb.OpenMySQL(t, server.DSN())
	prepare(t, db)
	tx := beginHasty(t, db, &Order{No: "a"})
	wantNil(t, tx.Protect(&Order{No: "a"}))
	wantNil(t, tx.DB().Create(&Order{No: "a"}).Error)
	stop := server.DelayLog(t, 2*time.Second)
	wantIs(t, tx.Commit(), dbtx.ErrCommitUnknown)
	ctx, cancel := context.WithTimeout(bg, 30*time.Second)
	defer cancel()
	if o, err := tx.Resolve(ctx); o != dbtx.Committed {
		t.Fatalf("resolved as %v, %v, want committed", o, err)
	}
	closePool(t, db)
	server.Kill(t)
	stop()
	server.Start(t)
	if n := count(t, testdb.OpenMySQL(t, server.DSN()), &Order{}); n != 1 {
		t.Errorf("%d rows after the crash, want the one that was resolved as committed", n)
	}
}

// TestResolveAwaitsARestart: a server that is killed with a transaction, and comes back in
// time, shows what became of it.
func TestResolveAwaitsARestart(t *testing.T) {
	server := startMariaDB(t)
	db := testdb.OpenMySQL(t, server.DSN())
	prepare(t, db)
	wantNil(t, db.AutoMigrate(&Token{}))
	tx := beginHasty(t, db, &Token{Code: "a"})
	wantNil(t, tx.Protect(&Token{Code: "a"}))
	wantNil(t, tx.DB().Create(&Token{Code: "a"}).Error)
	server.DelayLog(t, 2*time.Second)
	wantIs(t, tx.Commit(), dbtx.ErrCommitUnknown)
	server.Kill(t) // before its log is written, on a machine that is not too slow
	ctx, cancel := context.WithTimeout(bg, time.Minute)
	defer cancel()
	done := make(chan resolved, 1)
	go func() {
		o, err := tx.Resolve(ctx)
		done <- resolved{o, err}
	}()
	server.Start(t)
	r, want := <-done, dbtx.NotCommitted
	if count(t, db, &Token{}) == 1 {
		want = dbtx.Committed
	}
	if r.outcome != want {
		t.Errorf("resolved as %v, %v, want %v", r.outcome, r.err, want)
	}
	closePool(t, db)
}

// TestResolveLeavesReplicationAlone: a commit that waits for a replica would be made
// without one if its session were killed, also if it were killed before that wait.
func TestResolveLeavesReplicationAlone(t *testing.T) {
	for _, tt := range []struct {
		name  string
		stall func(*testing.T, *mariaDB) // before the COMMIT
	}{
		{"waits for a replica", func(*testing.T, *mariaDB) {}},
		{"writes its log before", func(t *testing.T, m *mariaDB) { m.DelayBinlog(t, 2*time.Second) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			server := startMariaDB(t, "--log-bin=binlog", "--sync-binlog=1", "--rpl-semi-sync-master-wait-point=AFTER_SYNC", "--rpl-semi-sync-master-timeout=3600000")
			db := testdb.OpenMySQL(t, server.DSN())
			prepare(t, db)
			tx := beginHasty(t, db, &Order{No: "a"})
			wantNil(t, tx.Protect(&Order{No: "a"}))
			wantNil(t, tx.DB().Create(&Order{No: "a"}).Error)
			wantNil(t, db.Exec("SET GLOBAL rpl_semi_sync_master_enabled = ON").Error) // there is no replica
			tt.stall(t, server)
			wantIs(t, tx.Commit(), dbtx.ErrCommitUnknown)
			ctx, cancel := context.WithTimeout(bg, 4*time.Second)
			defer cancel()
			o, err := tx.Resolve(ctx)
			if o != dbtx.Unresolved {
				t.Errorf("resolved as %v", o)
			}
			wantIs(t, err, context.DeadlineExceeded)
			if n := count(t, db, &Order{}); n != 0 {
				t.Errorf("%d rows committed that no replica has", n)
			}
			closePool(t, db)
		})
	}
}

// closePool closes a pool while its server lives.
func closePool(t *testing.T, db *gorm.DB) {
	t.Helper()
	pool, err := db.DB()
	wantNil(t, err)
	wantNil(t, pool.Close())
}

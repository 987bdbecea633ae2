package dbguard_test

import (
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
)

func TestUnknownCommit(t *testing.T) {
	for _, tt := range []struct {
		name string
		cut  func(*testdb.Link) *atomic.Bool
		rows int64
		want dbguard.Outcome
	}{
		{"cut before the commit arrives", func(k *testdb.Link) *atomic.Bool { return &k.Before }, 0, dbguard.NotCommitted},
		{"cut after the commit", func(k *testdb.Link) *atomic.Bool { return &k.After }, 1, dbguard.Committed},
		{"cut, and the session lives on", func(k *testdb.Link) *atomic.Bool { return &k.Stall }, 0, dbguard.NotCommitted},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dsn := teststack.MySQL(t)
			direct := testdb.OpenMySQL(t, dsn)
			prepare(t, direct)
			k := testdb.NewLink(t, testdb.AddrOf(t, dsn))
			db := testdb.OpenMySQL(t, k.Through(t, dsn))
			wantNil(t, dbguard.Install(db))

			tx := begin(t, db, dbguard.Options{})
			wantNil(t, tx.Protect(&Order{No: "a"}))
			wantNil(t, tx.DB().Create(&Order{No: "a"}).Error)
			undone := false
			tx.OnRollback(func() { undone = true })
			tt.cut(k).Store(true)
			wantIs(t, tx.Commit(), dbguard.ErrCommitUnknown)
			tt.cut(k).Store(false)
			if o, err := tx.Resolve(bg); o != tt.want || err != nil {
				t.Errorf("resolved as %v, %v, want %v", o, err, tt.want)
			}
			if undone != (tt.want != dbguard.Committed) {
				t.Errorf("what was in memory: undone is %v", undone)
			}
			await(t, "the rows are as they must be", func() bool { return count(t, direct, &Order{}) == tt.rows })
		})
	}
}

// TestKilledSession has the server end the session inside the transaction.
func TestKilledSession(t *testing.T) {
	db := testdb.OpenMySQL(t, teststack.MySQL(t))
	prepare(t, db)
	tx := begin(t, db, dbguard.Options{})
	wantNil(t, tx.DB().Create(&Order{No: "a"}).Error)
	var id int
	wantNil(t, tx.DB().Raw("SELECT CONNECTION_ID()").Scan(&id).Error)
	wantNil(t, db.Exec("KILL "+strconv.Itoa(id)).Error) // MySQL takes no parameter here
	if err := tx.DB().Create(&Order{No: "b"}).Error; err == nil {
		t.Fatal("a killed session took a statement")
	}
	wantIs(t, tx.DB().Create(&Order{No: "c"}).Error, dbguard.ErrPoisoned)
	tx.Rollback()
	if n := count(t, db, &Order{}); n != 0 {
		t.Errorf("%d rows, want none", n)
	}
}

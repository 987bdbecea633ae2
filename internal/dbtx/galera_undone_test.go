package dbtx_test

import (
	"fmt"
	"testing"

	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/dbtx"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
)

// TestGaleraUndoneAsAWhole: a node undoes a transaction in favour of one that was committed on
// another. It tells nobody if it was about to prepare a SELECT. What the transaction writes
// afterwards is not committed alone, however the transaction ends.
func TestGaleraUndoneAsAWhole(t *testing.T) {
	for _, wait := range []int{0, 1} {
		for _, commits := range []bool{true, false} {
			t.Run(fmt.Sprintf("wsrep_sync_wait=%d, commits: %t", wait, commits), func(t *testing.T) {
				nodes := teststack.Galera(t)
				db := testdb.OpenMySQL(t, fmt.Sprintf("%s&wsrep_sync_wait=%d", nodes[0], wait))
				prepare(t, db)
				wantNil(t, db.Create(&Stock{ID: 1, Left: 9}).Error)
				other := testdb.OpenMySQL(t, nodes[1]+"&wsrep_sync_wait=1")
				wantNil(t, other.Exec("SELECT 1").Error)
				for i := range 50 {
					undone(t, db, other, fmt.Sprint(i), commits)
				}
				wantNil(t, db.Exec("UPDATE stocks SET version = 7 WHERE id = 1").Error)
				if s := stock(t, testdb.OpenMySQL(t, nodes[0]), 1); s.Version != 7 {
					t.Error("the pool has got a connection without autocommit")
				}
			})
		}
	}
}

// undone begins a transaction that loses an order to another node while it reads, writes
// once more, and ends.
func undone(t *testing.T, db, other *gorm.DB, no string, commits bool) {
	t.Helper()
	tx := begin(t, db, dbtx.Options{})
	wantNil(t, tx.DB().Create(&Order{No: no}).Error)
	created := make(chan error, 1)
	go func() { created <- other.Create(&Order{No: no}).Error }()
	var err error
	for arrived := int64(0); arrived == 0 && err == nil; {
		for range 5 {
			if err == nil {
				err = tx.DB().Where(left(db)+" > ?", 0).Find(&[]Stock{}).Error
			}
		}
		wantNil(t, db.Model(&Order{}).Where("no = ?", no).Count(&arrived).Error)
	}
	wantNil(t, <-created)
	if err == nil {
		err = tx.DB().Model(&Stock{ID: 1}).UpdateColumn("left", 0).Error
	}
	if err == nil && commits {
		err = tx.Commit()
	}
	tx.Rollback()
	if commits && !dbtx.Retryable(err) {
		t.Errorf("the transaction ended with %v, want an error after which it may be run again", err)
	}
	if now := stock(t, db, 1).Left; now != 9 {
		t.Fatalf("left is %d after a transaction that was undone and ended with %v", now, err)
	}
}

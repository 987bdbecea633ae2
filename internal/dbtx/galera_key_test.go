package dbtx_test

import (
	"testing"

	"github.com/belaygo/belay/internal/dbtx"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
)

// TestGaleraGivesKeysAgain: nodes number their rows by how many of them there are. After one
// has left or come back, another may give the key that a transaction had which was rolled
// back here.
func TestGaleraGivesKeysAgain(t *testing.T) {
	type Parcel struct {
		ID   int64
		Code string `gorm:"size:32;uniqueIndex"`
	}
	for name, code := range map[string]string{"to another row": "b", "to a row of this name": "a"} {
		t.Run(name, func(t *testing.T) {
			nodes := teststack.Galera(t)
			k := testdb.NewLink(t, testdb.AddrOf(t, nodes[0]))
			db := testdb.OpenMySQL(t, k.Through(t, nodes[0])+"&wsrep_sync_wait=1")
			wantNil(t, dbtx.Install(db))
			other := testdb.OpenMySQL(t, nodes[1]+"&wsrep_sync_wait=1")
			wantNil(t, other.AutoMigrate(&Parcel{}))
			tx := begin(t, db, dbtx.Options{})
			wantNil(t, tx.Protect(&Parcel{Code: "a"}))
			mine := &Parcel{Code: "a"}
			wantNil(t, tx.DB().Create(mine).Error)
			lose(t, tx, k, false)
			wantNil(t, other.Create(&Parcel{ID: mine.ID, Code: code}).Error)
			if o, err := tx.Resolve(bg); o != dbtx.Unresolved || err == nil {
				t.Errorf("resolved as %v, %v, though nothing proves it", o, err)
			}
		})
	}
}

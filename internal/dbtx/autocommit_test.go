package dbtx_test

import (
	"testing"

	"github.com/belaygo/belay/internal/dbtx"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
)

// TestResolveLeavesNoRowLocked: without autocommit its reads belong to a transaction, which has
// ended when the connection goes back to the pool.
func TestResolveLeavesNoRowLocked(t *testing.T) {
	dsn := teststack.MySQL(t)
	direct := testdb.OpenMySQL(t, dsn)
	prepare(t, direct)
	wantNil(t, direct.AutoMigrate(&Ware{}))
	wantNil(t, direct.Create(&Ware{ID: 1, Left: 5}).Error)
	k := testdb.NewLink(t, testdb.AddrOf(t, dsn))
	db := testdb.OpenMySQL(t, k.Through(t, dsn)+"&autocommit=0")
	wantNil(t, dbtx.Install(db))
	for _, arrives := range []bool{false, true} {
		tx := begin(t, db, dbtx.Options{})
		wantNil(t, tx.Protect(&Ware{ID: 1}))
		var w Ware
		wantNil(t, tx.DB().Take(&w, 1).Error)
		wantNil(t, tx.DB().Model(&w).Update("left", w.Left-1).Error)
		want := dbtx.NotCommitted
		if arrives {
			want = dbtx.Committed
		}
		if o, err := resolve(t, tx, k, arrives); o != want {
			t.Errorf("resolved as %v, %v, want %v", o, err, want)
		}
		wantNil(t, direct.Raw("SELECT id FROM wares WHERE id = 1 FOR UPDATE NOWAIT").Row().Scan(new(int64)))
	}
}

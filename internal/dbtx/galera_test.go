package dbtx_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/dbtx"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
)

// A galera is a cluster of a test's own.
type galera struct {
	*teststack.Bed
	dsns []string
}

func startGalera(t *testing.T) galera {
	t.Helper()
	teststack.Galera(t) // or it is skipped
	b := teststack.StartBed(t, "galera", teststack.BedConfig{Servers: []string{"galera"}})
	return galera{b, b.DSNs(t, "BELAY_GALERA_DSNS")}
}

// TestGaleraCommits: what is known of a COMMIT on a node that others have refused, that has
// lost them, or that has died.
func TestGaleraCommits(t *testing.T) {
	g := startGalera(t)
	for _, tt := range []struct {
		name string
		test func(*testing.T, galera)
	}{
		{"refused by the others", testGaleraConflict},
		{"without the others", testGaleraWithoutOthers},
		{"died", testGaleraDied},
	} {
		t.Run(tt.name, func(t *testing.T) {
			db := g.open(t, 0)
			prepare(t, db)
			wantNil(t, db.Exec("DELETE FROM orders").Error)
			tt.test(t, g)
			g.Stack(t, "heal")
		})
	}
}

func (g galera) open(t *testing.T, node int) *gorm.DB {
	t.Helper()
	return testdb.OpenMySQL(t, g.dsns[node])
}

// begin returns a transaction on a node over a link that has inserted an order.
func (g galera) begin(t *testing.T, node int) (*testdb.Link, *dbtx.Tx) {
	t.Helper()
	k := testdb.NewLink(t, testdb.AddrOf(t, g.dsns[node]))
	db := testdb.OpenMySQL(t, k.Through(t, g.dsns[node]))
	wantNil(t, dbtx.Install(db))
	tx := begin(t, db, dbtx.Options{EndTimeout: time.Minute})
	wantNil(t, tx.Protect(&Order{No: "a"}))
	wantNil(t, tx.DB().Create(&Order{No: "a"}).Error)
	return k, tx
}

// testGaleraConflict: of two transactions on two nodes that write one row the later
// one is refused at its COMMIT, with 1213. That proves that nothing of it was committed.
func testGaleraConflict(t *testing.T, g galera) {
	_, one := g.begin(t, 0)
	_, other := g.begin(t, 1)
	wantNil(t, other.Commit())
	err := one.Commit()
	if e, ok := errors.AsType[*mysql.MySQLError](err); !ok || e.Number != 1213 || errors.Is(err, dbtx.ErrCommitUnknown) {
		t.Errorf("COMMIT ended with %v, want 1213 and a known outcome", err)
	}
	if n := count(t, g.open(t, 2), &Order{}); n != 1 {
		t.Errorf("%d orders", n)
	}
}

// testGaleraWithoutOthers: a node that has lost sight of the others lets each COMMIT
// wait, and answers nobody. Whatever is said at the end is so on all nodes.
func testGaleraWithoutOthers(t *testing.T, g galera) {
	_, tx := g.begin(t, 0)
	g.Stack(t, "pause", "galera-2")
	g.Stack(t, "pause", "galera-3")
	done := make(chan error, 1)
	go func() { done <- tx.Commit() }()
	sessions := g.open(t, 0)
	testwait.Until(t, "it is no member of a majority", func() bool {
		var name, status string
		err := sessions.Raw("SHOW STATUS LIKE 'wsrep_cluster_status'").Row().Scan(&name, &status)
		return err == nil && status != "Primary"
	})
	err := <-done
	t.Logf("COMMIT ended with %v", err)
	if errors.Is(err, dbtx.ErrCommitUnknown) {
		ctx, cancel := context.WithTimeout(bg, time.Second)
		defer cancel()
		o, err := tx.Resolve(ctx)
		if o != dbtx.Unresolved || err == nil {
			t.Errorf("resolved as %v, %v", o, err)
		}
	}
	g.Stack(t, "resume", "galera-2")
	g.Stack(t, "resume", "galera-3")
	g.Stack(t, "heal")
	if err == nil || !errors.Is(err, dbtx.ErrCommitUnknown) {
		want := 0
		if err == nil {
			want = 1
		}
		if n := count(t, g.open(t, 1), &Order{}); n != int64(want) {
			t.Errorf("COMMIT ended with %v, and another node has %d orders", err, n)
		}
	}
}

// testGaleraDied: another node says nothing of a COMMIT that a dead one had.
func testGaleraDied(t *testing.T, g galera) {
	k, tx := g.begin(t, 0)
	k.After.Store(true)
	wantIs(t, tx.Commit(), dbtx.ErrCommitUnknown)
	k.After.Store(false)
	g.Stack(t, "kill", "galera-1")
	testwait.Until(t, "the others go on", func() bool { return count(t, g.open(t, 1), &Order{}) == 1 })
	k.Lead(testdb.AddrOf(t, g.dsns[1]))
	wantNoProof(t, tx, "another server")
}

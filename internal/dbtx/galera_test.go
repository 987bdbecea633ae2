package dbtx_test

import (
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
		{"without the others, with dirty reads", testGaleraWithDirtyReads},
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
	return k, ordering(t, db, "a")
}

// ordering returns a transaction that has inserted an order.
func ordering(t *testing.T, db *gorm.DB, no string) *dbtx.Tx {
	t.Helper()
	tx := begin(t, db, dbtx.Options{EndTimeout: time.Minute})
	wantNil(t, tx.Protect(&Order{No: no}))
	wantNil(t, tx.DB().Create(&Order{No: no}).Error)
	return tx
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

func testGaleraWithoutOthers(t *testing.T, g galera)  { g.isolate(t, false) }
func testGaleraWithDirtyReads(t *testing.T, g galera) { g.isolate(t, true) }

// isolate: a node that has lost sight of the others lets each COMMIT wait, and gives up at
// last, which proves nothing: the others may have it in their order. With wsrep_dirty_reads
// the node shows rows meanwhile, which do not decide. They do when it is in the majority
// again, and then all nodes have what they say, unless the insert was committed after all: nothing
// proves that.
func (g galera) isolate(t *testing.T, dirty bool) {
	t.Helper()
	dsn := g.dsns[0]
	if dirty {
		dsn += "&wsrep_dirty_reads=ON"
	}
	db := testdb.OpenMySQL(t, dsn)
	wantNil(t, dbtx.Install(db))
	hasty, waiting := ordering(t, db, "hasty"), ordering(t, db, "waiting")
	g.Stack(t, "pause", "galera-2")
	g.Stack(t, "pause", "galera-3")
	done := make(chan error, 2)
	for _, tx := range []*dbtx.Tx{hasty, waiting} {
		go func() { done <- tx.Commit() }()
	}
	sessions := g.open(t, 0)
	testwait.Until(t, "it is no member of a majority", func() bool {
		var name, status string
		err := sessions.Raw("SHOW STATUS LIKE 'wsrep_cluster_status'").Row().Scan(&name, &status)
		return err == nil && status != "Primary"
	})
	for range 2 {
		wantIs(t, <-done, dbtx.ErrCommitUnknown)
	}
	var orders int64
	if err := db.Model(&Order{}).Count(&orders).Error; (err == nil) != dirty {
		t.Errorf("the node shows rows: %v", err)
	}
	type resolved struct {
		dbtx.Outcome
		error
	}
	later := make(chan resolved, 1)
	go func() {
		o, err := waiting.Resolve(patient(t))
		later <- resolved{o, err}
	}()
	wantNoProof(t, hasty, "takes no writes")
	if len(later) > 0 {
		t.Errorf("resolved as %v without the others", <-later)
	}
	g.Stack(t, "resume", "galera-2")
	g.Stack(t, "resume", "galera-3")
	g.Stack(t, "heal")
	r := <-later
	for node := range g.dsns {
		db := testdb.OpenMySQL(t, g.dsns[node]+"&wsrep_sync_wait=1").Where("no = ?", "waiting")
		n := count(t, db, &Order{})
		unproven := n == 1 && r.Outcome == dbtx.Unresolved // the number of a row proves nothing here
		if !unproven && (r.error != nil || (n == 1) != (r.Outcome == dbtx.Committed)) {
			t.Errorf("resolved as %v, %v in the majority, and node %d has %d orders", r.Outcome, r.error, node, n)
		}
	}
	t.Logf("with dirty reads %t: resolved as %v", dirty, r.Outcome)
}

// testGaleraDied: another node says nothing of a COMMIT that a dead one had, though it has
// the same host name, port and numbers.
func testGaleraDied(t *testing.T, g galera) {
	var one, other string
	const names = "SELECT CONCAT_WS(' ', @@hostname, @@port, @@server_id, @@server_uid, @@gtid_domain_id)"
	wantNil(t, g.open(t, 0).Raw(names).Row().Scan(&one))
	wantNil(t, g.open(t, 1).Raw(names).Row().Scan(&other))
	if one != other {
		t.Errorf("the nodes are %s and %s, want the same", one, other)
	}
	k, tx := g.begin(t, 0)
	k.After.Store(true)
	wantIs(t, tx.Commit(), dbtx.ErrCommitUnknown)
	k.After.Store(false)
	g.Stack(t, "kill", "galera-1")
	testwait.Until(t, "the others go on", func() bool { return count(t, g.open(t, 1), &Order{}) == 1 })
	k.Lead(testdb.AddrOf(t, g.dsns[1]))
	wantNoProof(t, tx, "another server")
}

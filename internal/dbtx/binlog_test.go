package dbtx_test

import (
	"slices"
	"testing"

	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/dbtx"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
)

// reads makes transactions that only read: the first one of a connection is sampled, the second is not.
func reads(t *testing.T, db *gorm.DB) {
	t.Helper()
	for range 2 {
		tx := begin(t, db, dbtx.Options{})
		wantNil(t, tx.Protect(&Order{No: "a"}))
		wantNil(t, tx.DB().Find(&[]Order{}).Error)
		wantNil(t, tx.Commit())
	}
}

// TestSemiSyncReadsAreNotLogged: a transaction that only reads adds nothing to MariaDB's binary log. It would
// wait for the replica, and be refused by a server that takes no writes.
func TestSemiSyncReadsAreNotLogged(t *testing.T) {
	p := newSemiSync(t, "logged")
	for name, db := range map[string]*gorm.DB{
		"alone":     openBy(t, connectorOf(t, p.DSN(0))),
		"of Galera": openBy(t, node{Connector: connectorOf(t, p.DSN(0))}),
	} {
		last := func() (gtid string) {
			wantNil(t, db.Raw("SELECT @@last_gtid").Row().Scan(&gtid))
			return gtid
		}
		wantNil(t, db.Create(&Order{No: name}).Error)
		before := last()
		reads(t, db)
		if after := last(); before == "" || after != before {
			t.Errorf("%s: the last transaction in the log is %q, before %q", name, after, before)
		}
	}
}

// TestGroupReadsAreNotLogged: nor does one to the log of a group's member, where it begins with a savepoint.
func TestGroupReadsAreNotLogged(t *testing.T) {
	g := teststack.MultiPrimaryGroup(t)
	prepare(t, testdb.OpenMySQL(t, g.DSNs[0]))
	db := openBy(t, connectorOf(t, g.DSNs[0]))
	executed := func() (gtids string) {
		wantNil(t, db.Raw("SELECT @@GLOBAL.gtid_executed").Row().Scan(&gtids))
		return gtids
	}
	before := executed()
	tx := begin(t, db, dbtx.Options{})
	wantNil(t, tx.DB().Exec("RELEASE SAVEPOINT belay_first").Error)
	tx.Rollback()
	reads(t, db)
	if after := executed(); after != before {
		t.Errorf("the log has %s, before %s", after, before)
	}
	wantNil(t, db.Create(&Order{No: "a"}).Error)
	if executed() == before {
		t.Error("a write is not in the log")
	}
}

// TestGroupSwappedSession: a connection that has got another session, without an error, is noticed in a group
// by the savepoint, whether the transaction had others or not. It is not taken for a member that has
// undone the transaction, which may be made again.
func TestGroupSwappedSession(t *testing.T) {
	g := teststack.MultiPrimaryGroup(t)
	prepare(t, testdb.OpenMySQL(t, g.DSNs[0]))
	for _, statements := range [][]string{{}, {"SAVEPOINT mine"}} {
		for _, second := range []bool{false, true} {
			s := &swapper{Connector: connectorOf(t, g.DSNs[0])}
			db := openBy(t, s)
			if second && len(statements) > 0 { // without a savepoint of its own only the first one is looked at
				wantNil(t, begin(t, db, dbtx.Options{}).Commit())
			}
			wantNil(t, db.Exec("DELETE FROM orders").Error)
			tx := begin(t, db, dbtx.Options{})
			s.swapAt("INSERT", nil)
			for _, st := range slices.Concat(statements, []string{"INSERT INTO orders (no) VALUES ('a')"}) {
				wantNil(t, tx.DB().Exec(st).Error)
			}
			err := tx.Commit()
			wantIs(t, err, dbtx.ErrTxControl)
			if tx.Unseen() == nil || dbtx.Retryable(err) {
				t.Errorf("%q: committed with %v, unseen: %v", statements, err, tx.Unseen())
			}
		}
	}
}

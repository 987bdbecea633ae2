package dbtx_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/dbtx"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
)

// A pair is a database with its replica. Programs know one address of it, which
// leads to node 0 at first.
type pair struct {
	*teststack.Pair
	address *testdb.Link
	db      *gorm.DB
}

// newPair returns a PostgreSQL with a synchronous standby.
func newPair(t *testing.T, name string) *pair {
	t.Helper()
	p := &pair{Pair: teststack.Standby(t, name)}
	p.address = testdb.NewLink(t, p.Addr(t, 0))
	p.db = testdb.OpenPostgres(t, p.address.Through(t, p.DSN(0)))
	prepare(t, p.db)
	wantNil(t, p.db.AutoMigrate(&Token{}, &Ware{}))
	return p
}

// promote has the other node take over, address included.
func (p *pair) promote(t *testing.T) {
	t.Helper()
	p.Run(t, "promote", 1)
	p.address.Lead(p.Addr(t, 1))
}

// A change is one of a row of its own. there reports whether a database has it.
type change struct {
	name  string
	row   any
	do    func(db *gorm.DB) error
	there func(t *testing.T, db *gorm.DB) bool
}

// changes returns an insert, an update and a delete of rows that no other call does.
func (p *pair) changes(t *testing.T, id int64) []change {
	t.Helper()
	code, updated, deleted := fmt.Sprint("no-", id), 2*id, 2*id+1
	wares := []Ware{{ID: updated, Left: 5}, {ID: deleted, Left: 5}}
	wantNil(t, p.db.Create(&wares).Error)
	counts := func(want int64, model any, where string, args ...any) func(*testing.T, *gorm.DB) bool {
		return func(t *testing.T, db *gorm.DB) bool { return count(t, db.Where(where, args...), model) == want }
	}
	return []change{
		{"insert", &Token{Code: code}, func(db *gorm.DB) error { return db.Create(&Token{Code: code}).Error },
			counts(1, &Token{}, "code = ?", code)},
		{"update", &Ware{ID: updated}, func(db *gorm.DB) error { return db.Model(&wares[0]).Update("left", 4).Error },
			counts(1, &Ware{}, "id = ? AND version = 2", updated)},
		{"delete", &Ware{ID: deleted}, func(db *gorm.DB) error { return db.Delete(&wares[1]).Error },
			counts(0, &Ware{}, "id = ?", deleted)},
	}
}

// begin begins a transaction and makes the change in it.
func (p *pair) begin(t *testing.T, c change, byRows bool) *dbtx.Tx {
	t.Helper()
	tx := begin(t, p.db, dbtx.Options{EndTimeout: time.Second})
	if byRows {
		tx.ByRows()
	}
	wantNil(t, tx.Protect(c.row))
	wantNil(t, c.do(tx.DB()))
	return tx
}

// wantUnresolved resolves a commit, for a while.
func wantUnresolved(t *testing.T, tx *dbtx.Tx, why error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(bg, 500*time.Millisecond)
	defer cancel()
	o, err := tx.Resolve(ctx)
	if o != dbtx.Unresolved || !errors.Is(err, why) {
		t.Errorf("resolved as %v, %v, want unresolved and %v", o, err, why)
	}
}

// patient returns a context for a Resolve that ends by itself, on a machine that is slow.
func patient(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(bg, time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// wantAnotherServer wants the commit to be unresolved because of who answers.
func wantAnotherServer(t *testing.T, tx *dbtx.Tx) {
	t.Helper()
	if o, err := tx.Resolve(patient(t)); o != dbtx.Unresolved || err == nil || !strings.Contains(err.Error(), "another server") {
		t.Errorf("resolved as %v, %v", o, err)
	}
}

// TestStandbyIsolatedPrimary: a primary without its standby lets each COMMIT wait. Nothing is
// resolved as committed, because the standby, promoted, has none of it. The wait is ended
// by the driver, which cancels what it gives up. If its connection is cut it goes on, and
// nobody sees the change: Resolve does not end it.
func TestStandbyIsolatedPrimary(t *testing.T) {
	for _, fault := range []string{"pause", "kill"} {
		t.Run(fault, func(t *testing.T) {
			p := newPair(t, "isolated")
			direct := testdb.OpenPostgres(t, p.DSN(0))
			type lost struct {
				name   string
				byRows bool
				cut    bool
				change
			}
			var all []lost
			for n, way := range []lost{{name: "number/cancelled"}, {name: "number/cut", cut: true}, {name: "rows/cancelled", byRows: true}, {name: "rows/cut", byRows: true, cut: true}} {
				for _, way.change = range p.changes(t, int64(n+1)) {
					all = append(all, way)
				}
			}
			p.Run(t, fault, 1)
			for _, l := range all {
				t.Run(l.name+"/"+l.change.name, func(t *testing.T) {
					tx := p.begin(t, l.change, l.byRows)
					p.address.Away.Store(l.cut)
					reset := p.address.Resets.Load()
					wantIs(t, tx.Commit(), dbtx.ErrCommitUnknown)
					testwait.Until(t, "the driver has cancelled the COMMIT, or could not", func() bool {
						return !l.cut || p.address.Resets.Load() > reset
					})
					p.address.Away.Store(false)
					wantUnresolved(t, tx, context.DeadlineExceeded)
					if l.cut && l.there(t, direct) {
						t.Error("others see the change")
					}
				})
			}
			p.Run(t, "kill", 0)
			if fault == "pause" {
				p.Run(t, "kill", 1) // with what its sockets have
			}
			p.promote(t)
			for _, l := range all {
				if l.there(t, p.db) {
					t.Errorf("%s of %s is there: the commit did not wait", l.change.name, l.name)
				}
			}
		})
	}
}

// TestStandbyPromotedDuringCommit: the primary dies with COMMITs that it has executed, that
// it never got, or that wait for the standby. Its successor at the same address says of
// none what became of it.
func TestStandbyPromotedDuringCommit(t *testing.T) {
	p := newPair(t, "promoted")
	for n, byRows := range []bool{false, true} {
		for m, arrives := range []bool{true, false} {
			for _, c := range p.changes(t, int64(2*n+m+1)) {
				tx := p.begin(t, c, byRows)
				lose(t, tx, p.address, arrives)
				defer func() {
					wantAnotherServer(t, tx)
					if c.there(t, p.db) != arrives {
						t.Errorf("the %s is there: %t, its COMMIT arrived: %t", c.name, !arrives, arrives)
					}
				}()
			}
		}
	}
	waiting := p.changes(t, 5)[0]
	tx := begin(t, p.db, dbtx.Options{})
	wantNil(t, waiting.do(tx.DB()))
	p.Run(t, "pause", 1)
	done := make(chan error, 1)
	go func() { done <- tx.Commit() }()
	direct := testdb.OpenPostgres(t, p.DSN(0))
	testwait.Until(t, "the COMMIT waits for the standby", func() bool {
		return count(t, direct.Table("pg_stat_activity").Where("wait_event = 'SyncRep'"), nil) == 1
	})
	p.Run(t, "kill", 0)
	wantIs(t, <-done, dbtx.ErrCommitUnknown)
	p.Run(t, "resume", 1)
	p.promote(t)
	wantAnotherServer(t, tx)
}

// TestStandbyAtTheSameAddress: the successor has the address and the port of the primary,
// and has given the number of the transaction to another, which it has committed.
func TestStandbyAtTheSameAddress(t *testing.T) {
	p := newPair(t, "address")
	insert := p.changes(t, 1)[0]
	p.Run(t, "kill", 1) // it gets nothing of the transaction
	tx := p.begin(t, insert, false)
	lose(t, tx, p.address, false)
	p.Run(t, "kill", 0)
	p.Run(t, "promote", 1)
	p.Run(t, "kill", 1)
	p.Swap(t)
	p.Run(t, "start", 0)
	if !reach(t, p.db, tx) {
		t.Fatal("the successor knows the number of a transaction that it has not")
	}
	wantAnotherServer(t, tx)
}

// reach has the database give the numbers of transactions up to that of tx, and reports whether
// it has given that one again.
func reach(t *testing.T, db *gorm.DB, tx *dbtx.Tx) (again bool) {
	t.Helper()
	number, err := strconv.Atoi(tx.Number())
	wantNil(t, err)
	testwait.Until(t, "the number is reached", func() bool {
		var now int
		err := db.Raw("SELECT pg_current_xact_id()::text").Scan(&now).Error
		again = err == nil && now == number
		return err == nil && now >= number
	})
	return again
}

// TestStandbyFormerPrimary: a primary that comes back as the standby says of no commit what
// became of it.
func TestStandbyFormerPrimary(t *testing.T) {
	p := newPair(t, "former")
	var lost []*dbtx.Tx
	for n, arrives := range []bool{true, false} {
		for _, c := range p.changes(t, int64(n+1)) {
			tx := p.begin(t, c, n == 0)
			lose(t, tx, p.address, arrives)
			lost = append(lost, tx)
		}
	}
	p.Run(t, "kill", 0)
	p.Run(t, "promote", 1)
	p.Run(t, "start", 0)
	for _, tx := range lost {
		wantAnotherServer(t, tx)
	}
}

// TestStandbySplitBrain: a primary that was never fenced, and does not know that another one
// writes, waits for its standby and says nothing of a commit.
func TestStandbySplitBrain(t *testing.T) {
	p := newPair(t, "split")
	var open []*dbtx.Tx
	for _, c := range p.changes(t, 1) {
		open = append(open, p.begin(t, c, false))
	}
	other := p.begin(t, p.changes(t, 2)[0], false)
	p.Run(t, "pause", 0)
	p.Run(t, "promote", 1)
	p.Run(t, "resume", 0)
	for _, tx := range open {
		wantIs(t, tx.Commit(), dbtx.ErrCommitUnknown)
		wantUnresolved(t, tx, context.DeadlineExceeded)
	}
	lose(t, other, p.address, false)
	wantUnresolved(t, other, context.DeadlineExceeded)
}

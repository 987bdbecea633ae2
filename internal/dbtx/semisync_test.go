package dbtx_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/dbtx"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
)

// newSemiSync returns a MariaDB with a semi-synchronous replica, as [newPair] does of
// PostgreSQL.
func newSemiSync(t *testing.T, name string) *pair {
	t.Helper()
	p := &pair{Pair: teststack.SemiSync(t, name)}
	p.address = testdb.NewLink(t, p.Addr(t, 0))
	p.db = testdb.OpenMySQL(t, p.address.Through(t, p.DSN(0)))
	prepare(t, p.db)
	wantNil(t, p.db.AutoMigrate(&Token{}, &Ware{}))
	return p
}

// direct opens a node, whoever is the writer.
func (p *pair) direct(t *testing.T, node int) *gorm.DB {
	t.Helper()
	return testdb.OpenMySQL(t, p.DSN(node))
}

// cut keeps all that follows from the replica, which may be promoted.
func (p *pair) cut(t *testing.T) {
	t.Helper()
	wantNil(t, p.direct(t, 1).Exec("STOP SLAVE IO_THREAD").Error)
}

// awaitWaiting waits until a commit on the primary waits for the replica. Others may wait
// behind it.
func (p *pair) awaitWaiting(t *testing.T) {
	t.Helper()
	direct := p.direct(t, 0)
	testwait.Until(t, "a commit waits for the replica", func() bool {
		return count(t, direct.Table("information_schema.processlist").Where("state LIKE '%semi-sync ACK%'"), nil) == 1
	})
}

// TestSemiSyncIsolatedPrimary: a primary without its replica lets each COMMIT wait. Nothing
// is resolved as committed, nor shown, because the replica, promoted, has none of it. Resolve
// does not end the wait.
func TestSemiSyncIsolatedPrimary(t *testing.T) {
	for fault, strike := range map[string]func(*testing.T, *pair){
		"cut":   func(t *testing.T, p *pair) { p.cut(t) },
		"pause": func(t *testing.T, p *pair) { p.Run(t, "pause", 1) },
		"kill":  func(t *testing.T, p *pair) { p.Run(t, "kill", 1) },
	} {
		t.Run(fault, func(t *testing.T) {
			p := newSemiSync(t, "isolated")
			changes := p.changes(t, 1)
			strike(t, p)
			for _, c := range changes {
				tx := p.begin(t, c, false)
				wantIs(t, tx.Commit(), dbtx.ErrCommitUnknown)
				wantUnresolved(t, tx, context.DeadlineExceeded)
				p.awaitWaiting(t)
				if c.there(t, p.direct(t, 0)) {
					t.Errorf("the %s is there: the commit did not wait", c.name)
				}
			}
			p.Run(t, "kill", 0)
			if fault != "cut" {
				return // the replica may get it all, from its sockets or from the primary
			}
			p.promote(t)
			for _, c := range changes {
				if c.there(t, p.db) {
					t.Errorf("the %s is there", c.name)
				}
			}
		})
	}
}

// TestSemiSyncLateCommit: a COMMIT comes after Resolve has seen its session sleep, and before
// it ends that session. It waits for the replica all the same.
func TestSemiSyncLateCommit(t *testing.T) {
	p := newSemiSync(t, "late")
	insert := p.changes(t, 1)[0]
	tx := p.begin(t, insert, false)
	p.cut(t)
	late := p.address.Delay()
	wantIs(t, tx.Commit(), dbtx.ErrCommitUnknown)
	kills, pass := make(chan struct{}), make(chan struct{})
	var first sync.Once
	stop := p.address.Interrupt(func(packet []byte) {
		if bytes.Contains(packet, []byte("KILL")) {
			first.Do(func() { close(kills); <-pass })
		}
	})
	defer stop()
	late.Open()
	type resolved struct {
		dbtx.Outcome
		error
	}
	done := make(chan resolved, 1)
	go func() {
		ctx, cancel := context.WithTimeout(bg, 10*time.Second)
		defer cancel()
		o, err := tx.Resolve(ctx)
		done <- resolved{o, err}
	}()
	select {
	case <-kills:
	case r := <-done:
		t.Fatalf("resolved as %v, %v, and no session was ended", r.Outcome, r.error)
	}
	go late.Deliver()
	p.awaitWaiting(t)
	close(pass)
	if r := <-done; r.Outcome != dbtx.Unresolved || !errors.Is(r.error, context.DeadlineExceeded) {
		t.Errorf("resolved as %v, %v", r.Outcome, r.error)
	}
	if insert.there(t, p.direct(t, 0)) {
		t.Error("the insert is there: the commit did not wait")
	}
	p.Run(t, "kill", 0)
	p.promote(t)
	if insert.there(t, p.db) {
		t.Error("the replica had the insert")
	}
}

// TestSemiSyncPromotedDuringCommit: the primary dies with COMMITs that it has executed, that
// it never got, or that wait for the replica. Its successor has the same address, host name
// and port, and says of none what became of it.
func TestSemiSyncPromotedDuringCommit(t *testing.T) {
	p := newSemiSync(t, "promoted")
	type lost struct {
		tx      *dbtx.Tx
		arrived bool
		change
	}
	var all []lost
	for n, arrives := range []bool{true, false} {
		for _, c := range p.changes(t, int64(n+1)) {
			tx := p.begin(t, c, false)
			lose(t, tx, p.address, arrives)
			all = append(all, lost{tx, arrives, c})
		}
	}
	waiting := p.begin(t, p.changes(t, 3)[0], false)
	p.Run(t, "pause", 1)
	wantIs(t, waiting.Commit(), dbtx.ErrCommitUnknown)
	p.awaitWaiting(t)
	p.Run(t, "kill", 0)
	p.Run(t, "resume", 1)
	p.promote(t)
	wantAnotherServer(t, waiting)
	for _, l := range all {
		wantAnotherServer(t, l.tx)
		if l.there(t, p.db) != l.arrived {
			t.Errorf("the %s is there: %t, its COMMIT arrived: %t", l.name, !l.arrived, l.arrived)
		}
	}
}

// TestSemiSyncDemotedPrimary: a primary that lives on without taking writes says of no commit
// what became of it, nor does it as the replica.
func TestSemiSyncDemotedPrimary(t *testing.T) {
	p := newSemiSync(t, "demoted")
	loseAll := func(id int64) (lost []*dbtx.Tx) {
		for n, arrives := range []bool{true, false} {
			for _, c := range p.changes(t, id+int64(n)) {
				tx := p.begin(t, c, false)
				lose(t, tx, p.address, arrives)
				lost = append(lost, tx)
			}
		}
		return lost
	}
	fenced, back := loseAll(1), loseAll(3)
	p.Run(t, "promote", 1)
	for _, tx := range fenced {
		wantUnresolved(t, tx, context.DeadlineExceeded)
	}
	p.Run(t, "start", 0)
	for _, tx := range back {
		wantUnresolved(t, tx, context.DeadlineExceeded)
	}
}

// TestSemiSyncSplitBrain: a primary that was never fenced, and does not know that another one
// writes, waits for its replica and says of no commit that it was done. It may say that one
// was not, as nobody else has it.
func TestSemiSyncSplitBrain(t *testing.T) {
	p := newSemiSync(t, "split")
	var open []*dbtx.Tx
	for _, c := range p.changes(t, 1) {
		open = append(open, p.begin(t, c, false))
	}
	other := p.changes(t, 2)[0]
	never := p.begin(t, other, false)
	p.Run(t, "pause", 0)
	p.Run(t, "promote", 1)
	p.Run(t, "resume", 0)
	for _, tx := range open {
		wantIs(t, tx.Commit(), dbtx.ErrCommitUnknown)
		wantUnresolved(t, tx, context.DeadlineExceeded)
	}
	lose(t, never, p.address, false)
	if o, err := never.Resolve(patient(t)); o != dbtx.NotCommitted {
		t.Errorf("resolved as %v, %v", o, err)
	}
	if other.there(t, p.direct(t, 1)) {
		t.Errorf("the %s is there", other.name)
	}
}

// TestSemiSyncRecovered: a primary that is started again shows what it finds in its binary
// log, whether the replica has it or not.
func TestSemiSyncRecovered(t *testing.T) {
	p := newSemiSync(t, "recovered")
	insert := p.changes(t, 1)[0]
	p.cut(t)
	tx := p.begin(t, insert, false)
	wantIs(t, tx.Commit(), dbtx.ErrCommitUnknown)
	p.awaitWaiting(t)
	p.Run(t, "kill", 0)
	p.Run(t, "start", 0)
	if !insert.there(t, p.direct(t, 0)) {
		t.Fatal("the insert is not there")
	}
	if o, err := tx.Resolve(patient(t)); o != dbtx.Unresolved || err == nil || !strings.Contains(err.Error(), "restarted") {
		t.Errorf("resolved as %v, %v", o, err)
	}
	p.Run(t, "kill", 0)
	p.promote(t)
	if insert.there(t, p.db) {
		t.Error("the replica had the insert")
	}
}

// TestSemiSyncTimeout: a primary that goes on without its replica after a while makes its
// commits alone. They are committed there, and nowhere else: dbguard.Check warns of that.
func TestSemiSyncTimeout(t *testing.T) {
	p := newSemiSync(t, "timeout")
	insert := p.changes(t, 1)[0]
	wantNil(t, p.direct(t, 0).Exec("SET GLOBAL rpl_semi_sync_master_timeout = 5000").Error) // longer than COMMIT waits
	p.cut(t)
	tx := p.begin(t, insert, false)
	wantIs(t, tx.Commit(), dbtx.ErrCommitUnknown)
	ctx, cancel := context.WithTimeout(bg, 30*time.Second)
	defer cancel()
	if o, err := tx.Resolve(ctx); o != dbtx.Committed {
		t.Errorf("resolved as %v, %v", o, err)
	}
	p.Run(t, "kill", 0)
	p.promote(t)
	if insert.there(t, p.db) {
		t.Error("the replica had the insert")
	}
}

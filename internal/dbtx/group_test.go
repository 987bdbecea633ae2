package dbtx_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/dbtx"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
)

// inGroup returns a pool that leads to a member of g over a link, and a transaction there
// that has inserted an order.
func inGroup(t *testing.T, g *teststack.MySQLGroup, member int) (*gorm.DB, *testdb.Link, *dbtx.Tx) {
	t.Helper()
	prepare(t, testdb.OpenMySQL(t, g.DSNs[member]))
	k := testdb.NewLink(t, testdb.AddrOf(t, g.DSNs[member]))
	db := testdb.OpenMySQL(t, k.Through(t, g.DSNs[member]))
	wantNil(t, dbtx.Install(db))
	tx := begin(t, db, dbtx.Options{EndTimeout: time.Minute})
	wantNil(t, tx.Protect(&Order{No: "a"}))
	wantNil(t, tx.DB().Create(&Order{No: "a"}).Error)
	return db, k, tx
}

// wantNoProof wants that nothing is concluded from what the server shows, and why. The last
// try may have been cut short.
func wantNoProof(t *testing.T, tx *dbtx.Tx, why string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(bg, 5*time.Second)
	defer cancel()
	o, err := tx.Resolve(ctx)
	if o != dbtx.Unresolved || err == nil || !strings.Contains(err.Error(), why) && !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("resolved as %v, %v, want unresolved and %s", o, err, why)
	}
}

// TestGroupPrimaryWithoutMajority: a primary that has lost the others for too long rolls back
// what waits for them: 3100, with MySQL 8 3101. The others have the transaction all the same,
// and commit it.
func TestGroupPrimaryWithoutMajority(t *testing.T) {
	g := teststack.Group(t)
	primary := g.Primary(t)
	db, _, tx := inGroup(t, g, primary)
	wantNil(t, db.Exec("SET GLOBAL group_replication_unreachable_majority_timeout = 1").Error)
	t.Cleanup(func() {
		wantNil(t, db.Exec("SET GLOBAL group_replication_unreachable_majority_timeout = DEFAULT").Error)
	})
	others := []int{(primary + 1) % 3, (primary + 2) % 3}
	for _, i := range others {
		g.Pause(t, i)
	}
	err := tx.Commit()
	wantIs(t, err, dbtx.ErrCommitUnknown)
	if e, ok := errors.AsType[*mysql.MySQLError](err); !ok || e.Number != 3100 && e.Number != 3101 {
		t.Errorf("COMMIT ended with %v, want a rollback by the group's plugin", err)
	}
	wantNoProof(t, tx, "read-only")
	for _, i := range others {
		g.Resume(t, i)
	}
	wantCommittedByOthers(t, g, primary)
}

// wantCommittedByOthers wants that another member is elected, and has the order.
func wantCommittedByOthers(t *testing.T, g *teststack.MySQLGroup, former int) {
	t.Helper()
	testwait.Until(t, "another is the primary", func() bool { return g.Primary(t) != former })
	next := testdb.OpenMySQL(t, g.DSNs[g.Primary(t)])
	testwait.Until(t, "the others commit the order", func() bool { return count(t, next, &Order{}) == 1 })
}

// TestGroupPrimaryDiesInCommit: the next primary is another server, which may not have all
// yet.
func TestGroupPrimaryDiesInCommit(t *testing.T) {
	g := teststack.Group(t)
	primary := g.Primary(t)
	_, k, tx := inGroup(t, g, primary)
	others := []int{(primary + 1) % 3, (primary + 2) % 3}
	for _, i := range others {
		g.Pause(t, i)
	}
	done := make(chan error)
	go func() { done <- tx.Commit() }()
	sessions := testdb.OpenMySQL(t, g.DSNs[primary])
	testwait.Until(t, "it waits for the others", func() bool {
		var waits bool
		wantNil(t, sessions.Raw("SELECT COUNT(*) FROM information_schema.processlist WHERE info = 'COMMIT'").Row().Scan(&waits))
		return waits
	})
	g.Kill(t, primary)
	wantIs(t, <-done, dbtx.ErrCommitUnknown)
	for _, i := range others {
		g.Resume(t, i)
	}
	testwait.Until(t, "another is the primary", func() bool { return g.Primary(t) != primary })
	k.Lead(testdb.AddrOf(t, g.DSNs[g.Primary(t)]))
	wantNoProof(t, tx, "another server")
}

// TestGroupResolvesOnThePrimary: what a server shows that is not in the majority, or is no
// primary, may be missing on those that take writes, or the other way round.
func TestGroupResolvesOnThePrimary(t *testing.T) {
	for _, tt := range []struct {
		name  string
		why   string
		leave func(t *testing.T, g *teststack.MySQLGroup, primary int, db *gorm.DB)
	}{
		{"secondary", "read-only", func(t *testing.T, g *teststack.MySQLGroup, primary int, _ *gorm.DB) {
			makePrimary(t, g, (primary+1)%3)
		}},
		{"without the others, and takes writes", "majority", func(t *testing.T, g *teststack.MySQLGroup, primary int, db *gorm.DB) {
			g.Pause(t, (primary+1)%3)
			g.Pause(t, (primary+2)%3)
			testwait.Until(t, "it does not reach them", func() bool {
				unreachable := db.Table("performance_schema.replication_group_members").Where("member_state = 'UNREACHABLE'")
				return count(t, unreachable, nil) == 2
			})
		}},
		{"offline", "read-only", func(t *testing.T, _ *teststack.MySQLGroup, _ int, db *gorm.DB) {
			wantNil(t, db.Exec("STOP GROUP_REPLICATION").Error)
		}},
		{"offline and takes writes, as after a restart", "no member", func(t *testing.T, _ *teststack.MySQLGroup, _ int, db *gorm.DB) {
			wantNil(t, db.Exec("STOP GROUP_REPLICATION").Error)
			wantNil(t, db.Exec("SET GLOBAL super_read_only = OFF").Error)
			wantNil(t, db.Exec("SET GLOBAL read_only = OFF").Error)
		}},
		{"recovering", "read-only", func(t *testing.T, g *teststack.MySQLGroup, primary int, db *gorm.DB) {
			wantNil(t, db.Exec("CREATE TABLE blockers (id INT PRIMARY KEY)").Error)
			wantNil(t, db.Exec("STOP GROUP_REPLICATION").Error)
			testwait.Until(t, "another is the primary", func() bool { return g.Primary(t) != primary })
			wantNil(t, testdb.OpenMySQL(t, g.DSNs[g.Primary(t)]).Exec("INSERT INTO blockers VALUES (1)").Error)
			pool, err := db.DB()
			wantNil(t, err)
			c, err := pool.Conn(bg)
			wantNil(t, err)
			t.Cleanup(func() { wantNil(t, c.Close()) })
			_, err = c.ExecContext(bg, "LOCK TABLES blockers READ")
			wantNil(t, err)
			g.Join(t, primary)
			testwait.Until(t, "it recovers", func() bool { return g.State(t, primary) == "RECOVERING" })
			t.Cleanup(func() { _, err := c.ExecContext(bg, "UNLOCK TABLES"); wantNil(t, err) })
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := teststack.Group(t)
			primary := g.Primary(t)
			_, k, tx := inGroup(t, g, primary)
			lose(t, tx, k, true)
			tt.leave(t, g, primary, testdb.OpenMySQL(t, g.DSNs[primary]))
			wantNoProof(t, tx, tt.why)
		})
	}
}

// TestGroupPrimaryResolves: the server that had the transaction says what became of it if it
// is the primary of a majority, also if another was that meanwhile.
func TestGroupPrimaryResolves(t *testing.T) {
	for name, meanwhile := range map[string]func(t *testing.T, g *teststack.MySQLGroup, primary int){
		"all the time": func(*testing.T, *teststack.MySQLGroup, int) {},
		"of two": func(t *testing.T, g *teststack.MySQLGroup, primary int) {
			g.Kill(t, (primary+1)%3)
		},
		"again": func(t *testing.T, g *teststack.MySQLGroup, primary int) {
			makePrimary(t, g, (primary+1)%3)
			makePrimary(t, g, primary)
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := teststack.Group(t)
			primary := g.Primary(t)
			db, k, committed := inGroup(t, g, primary)
			lost := ordering(t, db, "b")
			lose(t, committed, k, true)
			lose(t, lost, k, false)
			meanwhile(t, g, primary)
			for tx, want := range map[*dbtx.Tx]dbtx.Outcome{committed: dbtx.Committed, lost: dbtx.NotCommitted} {
				if o, err := tx.Resolve(patient(t)); o != want || err != nil {
					t.Errorf("resolved as %v, %v, want %v", o, err, want)
				}
			}
			other := testdb.OpenMySQL(t, g.DSNs[(primary+2)%3])
			testwait.Until(t, "another member has the same", func() bool { return count(t, other, &Order{}) == 1 })
		})
	}
}

// makePrimary has a member take the place of the primary.
func makePrimary(t *testing.T, g *teststack.MySQLGroup, member int) {
	t.Helper()
	db := testdb.OpenMySQL(t, g.DSNs[member])
	var id string
	wantNil(t, db.Raw("SELECT @@server_uuid").Row().Scan(&id))
	wantNil(t, db.Exec("DO group_replication_set_as_primary('"+id+"')").Error)
	testwait.Until(t, "it is the primary", func() bool { return g.Primary(t) == member })
}

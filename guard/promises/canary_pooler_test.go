package promises_test

import (
	"database/sql"
	"errors"
	"fmt"
	"testing"

	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/guard/guardtest"
	"github.com/belaygo/belay/internal/requestkey"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/once"
)

// behindPgBouncer returns a service on a PostgreSQL of the test's own behind a pooler in transaction
// mode. e.db is past that.
func behindPgBouncer(t *testing.T) (e *env, bed *teststack.Bed, pooled *gorm.DB) {
	t.Helper()
	teststack.PgBouncer(t) // or it is skipped
	bed = teststack.StartBed(t, "pooler", teststack.BedConfig{Servers: []string{"postgres", "pgbouncer"}})
	direct := testdb.OpenPostgres(t, bed.DSNs(t, "BELAY_POSTGRES_DSN")[0])
	wantNil(t, errors.Join(direct.AutoMigrate(&Order{}, &Stock{}), once.Migrate(bg, direct)))
	pooled = testdb.OpenPostgres(t, bed.DSNs(t, "BELAY_PGBOUNCER_DSN")[0]+"&default_query_exec_mode=simple_protocol")
	e = &env{t: t, db: direct, Guard: guardtest.New(t, pooled)}
	e.create(&Stock{ID: 1, Left: 1e6})
	e.inside().LookAgainAfter(lookAgain)
	return e, bed, pooled
}

// missing returns how many of these requests have no claim.
func (e *env) missing(from, to int) (n int) {
	e.t.Helper()
	for id := from; id < to; id++ {
		r := request(fmt.Sprint(id))
		sum := requestkey.Sum(r.Operation, r.Scope, r.ID)
		var found int
		testwait.Until(e.t, "no connection is of the server that was killed", func() bool {
			return e.db.Raw("SELECT COUNT(*) FROM belay_once WHERE request = ?", sum[:]).Scan(&found).Error == nil
		})
		n += 1 - found
	}
	return n
}

// TestPoolerCanary: neither another session nor a restart of the pooler or of the server is news, but
// commits that a crash of the server has lost are, once.
func TestPoolerCanary(t *testing.T) {
	e, bed, pooled := behindPgBouncer(t)
	again := func(name string) {
		bed.Stack(t, "kill", name)
		bed.Stack(t, "start", name)
	}

	e.serve(0, 3)
	pool, err := pooled.DB()
	wantNil(t, err)
	var held []*sql.Tx // each has the session that has just been used
	for n := range 2 {
		tx, err := pool.Begin()
		wantNil(t, err)
		held = append(held, tx)
		e.serve(3+n, 4+n)
	}
	for _, tx := range held {
		wantNil(t, tx.Rollback())
	}
	again("pgbouncer")
	n := 0
	testwait.Until(t, "the pooler answers again", func() bool {
		n++
		return e.Do(bg, "stock:1", takeOne(1), guard.For(request(fmt.Sprint("pooler ", n)))) == nil
	})
	if looks, last := e.inside().Looks(); looks || !last.IsZero() {
		t.Error("it has looked for lost commits, though the server is the same")
	}

	again("postgres")
	e.nextLook("server ")
	e.wantNoEvent()

	for _, statement := range []string{
		"ALTER SYSTEM SET synchronous_commit = off", "ALTER SYSTEM SET wal_writer_delay = '10s'", "SELECT pg_reload_conf()",
	} {
		testwait.Until(t, "no connection is of the server that was killed", func() bool { return e.db.Exec(statement).Error == nil })
	}
	testwait.Until(t, "commits are not awaited", func() bool {
		var value string
		return pooled.Raw("SHOW synchronous_commit").Scan(&value).Error == nil && value == "off"
	})
	e.serve(10, 20)
	again("postgres")
	lost := e.missing(10, 20)
	if lost == 0 {
		t.Fatal("the crash has lost no commit")
	}
	t.Logf("the crash has lost %d of 10 commits", lost)
	e.nextLook("crashed ")
	e.wantLost(lost)
	e.serve(20, 25)
	e.wantLost(lost)
}

// TestPoolerPreparedStatements: a pooler that gives each transaction to another session loses the
// statements that a driver has prepared. An operation that meets that has an error, and took no
// effect.
func TestPoolerPreparedStatements(t *testing.T) {
	_, bed, _ := behindPgBouncer(t)
	dsn := bed.DSNs(t, "BELAY_PGBOUNCER_DSN")[0] // pgx prepares each statement, by default
	first := testdb.OpenPostgres(t, dsn)
	e := &env{t: t, db: testdb.OpenPostgres(t, bed.DSNs(t, "BELAY_POSTGRES_DSN")[0]), Guard: guardtest.New(t, first)}
	other := e.Peer(t, testdb.OpenPostgres(t, dsn))
	var done, failed, unknown int
	for n := range 60 {
		no := fmt.Sprint("prepared-", n)
		g := []*guard.Guard{e.Guard.Guard, other}[n%2]
		err := g.Do(bg, "order:"+no, guard.Insert(&Order{No: no}).Run, guard.Protects(&Order{No: no}))
		var there int64
		wantNil(t, e.db.Model(&Order{}).Where("no = ?", no).Count(&there).Error)
		switch {
		case errors.Is(err, guard.ErrUnknown):
			unknown++
		case err == nil:
			done++
		default:
			failed++
		}
		if !errors.Is(err, guard.ErrUnknown) && (err == nil) != (there == 1) {
			t.Errorf("%s: %v, and %d rows", no, err, there)
		}
	}
	t.Logf("%d done, %d failed, %d unknown", done, failed, unknown)
}

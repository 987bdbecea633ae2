package dbtx_test

import (
	"syscall"
	"testing"

	"github.com/belaygo/belay/internal/dbtx"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
)

// TestNumberIsGivenAgain: when one session of PostgreSQL is killed, all others end, and what
// was not in the log is forgotten, the number of a transaction, too. The next one has it.
// That one's commit proves nothing.
func TestNumberIsGivenAgain(t *testing.T) {
	dsn := teststack.StartPostgres(t, "crash")
	k := testdb.NewLink(t, testdb.AddrOf(t, dsn))
	db := testdb.OpenPostgres(t, k.Through(t, dsn))
	prepare(t, db)
	wantNil(t, db.Exec("ALTER SYSTEM SET wal_writer_delay = '10s'").Error) // it writes no log by itself
	wantNil(t, db.Exec("SELECT pg_reload_conf()").Error)
	wantNil(t, db.Exec("CHECKPOINT").Error)
	var tx *dbtx.Tx
	testwait.Until(t, "the number is forgotten and given again", func() bool {
		tx = begin(t, db, dbtx.Options{})
		wantNil(t, tx.Protect(&Order{No: "a"}))
		wantNil(t, tx.DB().Create(&Order{No: "a"}).Error)
		lose(t, tx, k, false)
		var session int
		wantNil(t, db.Raw("SELECT pg_backend_pid()").Scan(&session).Error)
		if err := syscall.Kill(session, syscall.SIGKILL); err != nil {
			t.Fatalf("kill a session: %v", err)
		}
		testwait.Until(t, "the server is back", func() bool { return db.Exec("SELECT 1").Error == nil })
		return reach(t, db, tx) // a server notes in its log every 15 s which numbers it has given
	})
	if o, err := tx.Resolve(bg); o != dbtx.NotCommitted || err != nil {
		t.Errorf("resolved as %v, %v", o, err)
	}
	if n := count(t, db, &Order{}); n != 0 {
		t.Errorf("%d rows", n)
	}
}

package dbtx_test

import (
	"database/sql"
	"log/slog"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/dbtx"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
)

// TestResolveEndsNoStranger: behind a pooler in transaction mode the session that had the
// transaction may be another client's by the time when its outcome is looked for.
func TestResolveEndsNoStranger(t *testing.T) {
	plain, pooled := teststack.PgBouncer(t)
	direct := testdb.OpenPostgres(t, plain)
	prepare(t, direct)
	k := testdb.NewLink(t, testdb.AddrOf(t, pooled))
	db := testdb.OpenPostgres(t, k.Through(t, pooled))
	wantNil(t, dbtx.Install(db))

	tx := begin(t, db, dbtx.Options{EndTimeout: 5 * time.Second})
	wantNil(t, tx.DB().Create(&Order{No: "a"}).Error)
	var session int64
	wantNil(t, tx.DB().Raw("SELECT pg_backend_pid()").Scan(&session).Error)
	lose(t, tx, k, true)

	other, err := testdb.OpenPostgres(t, pooled).DB()
	wantNil(t, err)
	var stranger *sql.Tx
	for tries := 0; stranger == nil; tries++ {
		if tries == 2 { // the third one is for Resolve
			t.Fatal("no other client has got the session")
		}
		some, err := other.Begin()
		wantNil(t, err)
		defer func() { _ = some.Rollback() }()
		var got int64
		wantNil(t, some.QueryRow("SELECT pg_backend_pid()").Scan(&got))
		if got == session {
			stranger = some
		}
	}
	if o, err := tx.Resolve(bg); o != dbtx.Committed || err != nil {
		t.Errorf("resolved as %v, %v", o, err)
	}
	if _, err := stranger.Exec("SELECT 1"); err != nil {
		t.Errorf("another client's session was ended: %v", err)
	}
}

// TestResolveBehindAPooler: the answer is that of the transaction, whichever session had it.
func TestResolveBehindAPooler(t *testing.T) {
	plain, pooled := teststack.PgBouncer(t)
	direct := testdb.OpenPostgres(t, plain)
	prepare(t, direct)
	k := testdb.NewLink(t, testdb.AddrOf(t, pooled))
	db := testdb.OpenPostgres(t, k.Through(t, pooled))
	wantNil(t, dbtx.Install(db))
	for _, arrives := range []bool{true, false} {
		tx := begin(t, db, dbtx.Options{EndTimeout: 5 * time.Second})
		wantNil(t, tx.DB().Create(&Order{No: map[bool]string{true: "a", false: "b"}[arrives]}).Error)
		lose(t, tx, k, arrives)
		want := map[bool]dbtx.Outcome{true: dbtx.Committed, false: dbtx.NotCommitted}[arrives]
		if o, err := tx.Resolve(bg); o != want || err != nil {
			t.Errorf("resolved as %v, %v, want %v", o, err, want)
		}
	}
	if n := count(t, direct, &Order{}); n != 1 {
		t.Errorf("%d rows, want 1", n)
	}
}

// TestPoolerIsNoticed: that the transactions of one connection are in different sessions is
// told once, and of a connection that has a session of its own never.
func TestPoolerIsNoticed(t *testing.T) {
	plain, pooled := teststack.PgBouncer(t)
	direct := testdb.OpenPostgres(t, plain)
	prepare(t, direct)
	warnings := func(db *gorm.DB, between func()) int {
		wantNil(t, dbtx.Install(db))
		pool, err := db.DB()
		wantNil(t, err)
		pool.SetMaxOpenConns(1)
		var log strings.Builder
		for range 3 {
			tx := begin(t, db, dbtx.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
			wantNil(t, tx.DB().Exec("SET LOCAL TIME ZONE 'Asia/Tokyo'").Error)
			wantNil(t, tx.Commit())
			between()
		}
		return strings.Count(log.String(), "pooler")
	}
	if n := warnings(testdb.OpenPostgres(t, plain), func() {}); n != 0 {
		t.Errorf("warned %d times of a pooler that is not there", n)
	}
	other, err := testdb.OpenPostgres(t, pooled).DB()
	wantNil(t, err)
	var holds []*sql.Tx
	if n := warnings(testdb.OpenPostgres(t, pooled), func() {
		if len(holds) < 2 { // takes the session that has just been used
			tx, err := other.Begin()
			wantNil(t, err)
			holds = append(holds, tx)
		}
	}); n != 1 {
		t.Errorf("warned %d times of a pooler, want once", n)
	}
	for _, tx := range holds {
		wantNil(t, tx.Rollback())
	}
}

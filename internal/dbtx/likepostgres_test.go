package dbtx_test

import (
	"net/url"
	"testing"

	"github.com/belaygo/belay/internal/dbtx"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
)

// TestServerThatTellsNoPosition: a server like PostgreSQL, such as Aurora, may refuse to tell
// its position in the log, with 55000. Transactions begin there, and an unknown COMMIT is
// found out by the rows.
func TestServerThatTellsNoPosition(t *testing.T) {
	dsn := teststack.Postgres(t)
	direct := testdb.OpenPostgres(t, dsn)
	prepare(t, direct)
	for _, statement := range []string{
		"CREATE SCHEMA refusing",
		`CREATE FUNCTION refusing.pg_current_wal_lsn() RETURNS pg_lsn LANGUAGE plpgsql AS $$ BEGIN
			RAISE EXCEPTION 'wal_level must be set to "logical"' USING ERRCODE = '55000'; END $$`,
	} {
		wantNil(t, direct.Exec(statement).Error)
	}
	k := testdb.NewLink(t, testdb.AddrOf(t, dsn))
	u, err := url.Parse(k.Through(t, dsn))
	wantNil(t, err)
	q := u.Query()
	q.Set("search_path", "refusing,pg_catalog,public") // the function stands before PostgreSQL's own
	u.RawQuery = q.Encode()
	db := testdb.OpenPostgres(t, u.String())
	wantNil(t, dbtx.Install(db))

	wantNil(t, direct.Create(&Stock{ID: 1, Left: 9}).Error)
	for _, arrives := range []bool{false, true} {
		tx := begin(t, db, dbtx.Options{})
		wantNil(t, tx.Protect(&Stock{ID: 1}))
		var s Stock
		wantNil(t, tx.DB().Take(&s, 1).Error)
		wantNil(t, tx.DB().Model(&s).Update("left", 8).Error)
		lose(t, tx, k, arrives)
		want := dbtx.NotCommitted
		if arrives {
			want = dbtx.Unresolved // a row of these values may be another's
		}
		if o, err := tx.Resolve(bg); o != want {
			t.Errorf("arrived %v: resolved as %v, %v, want %v", arrives, o, err, want)
		}
	}
}

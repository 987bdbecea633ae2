package dbtx_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/claim"
	"github.com/belaygo/belay/internal/dbtx"
	"github.com/belaygo/belay/internal/dbtx/dialect"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/once"
)

const (
	cockroach = "CockroachDB CCL v23.1.11 (x86_64-pc-linux-gnu, built 2023/09/27 01:53:43, go1.19.10)"
	yugabyte  = "PostgreSQL 15.2-YB-2025.1.0.0-b0 on x86_64-pc-linux-gnu, compiled by clang"
	plain     = "PostgreSQL 15.2 on x86_64-pc-linux-gnu, compiled by gcc"
)

// TestResemblingServer: on a server that only resembles PostgreSQL or MySQL a lost COMMIT is proven
// by a stamp, and by nothing else. That a row is missing or old proves nothing, nor does the
// server's number of the transaction. The same server proves it if it does not say that it is
// another, nor is told to be one: by Options.Family the outcomes of one that hides what it is are
// those of one that shows it.
func TestResemblingServer(t *testing.T) {
	t.Parallel()
	servers := map[string]func(*testing.T) (direct, db *gorm.DB, k *testdb.Link){
		"PostgreSQL":  posesAsPostgres(plain),
		"CockroachDB": posesAsPostgres(cockroach),
		"YugabyteDB":  posesAsPostgres(yugabyte),
		"CockroachDB that lists no session": posesAsPostgres(cockroach,
			"CREATE VIEW posing.pg_stat_activity AS SELECT * FROM pg_catalog.pg_stat_activity WHERE FALSE"),
		"Citus": posesAsPostgres(plain, `CREATE FUNCTION posing.citus_version() RETURNS text LANGUAGE sql AS 'SELECT ''Citus 12.1'''`),
		"no PostgreSQL": posesAsPostgres(plain, `CREATE FUNCTION posing.pg_current_wal_lsn() RETURNS pg_lsn LANGUAGE plpgsql AS $$ BEGIN
			RAISE EXCEPTION 'unimplemented' USING ERRCODE = '0A000'; END $$`),
		"MySQL":  posesAsMySQL(""), // or MariaDB, whichever the tests run on
		"TiDB":   posesAsMySQL("-TiDB-v7"),
		"Vitess": posesAsMySQL("-Vitess2"),

		"CockroachDB that hides it": posesAsPostgres(plain),
		"PgDog":                     posesAsPostgres(plain), // as if it showed the version of a shard
		"TiDB that hides it":        posesAsMySQL(""),
	}
	told := map[string]dialect.Family{"CockroachDB that hides it": "CockroachDB", "PgDog": "PgDog", "TiDB that hides it": "TiDB"}
	type row struct {
		write         func(*dbtx.Tx) error
		before, after dbtx.Outcome // of a known server: if the COMMIT did not arrive, and if it did
	}
	rows := map[string]row{
		"claim of a request with a stamp": {func(tx *dbtx.Tx) error {
			return tx.Claim("k", &claim.Claim{Request: make([]byte, 32)}, 0)
		}, dbtx.NotCommitted, dbtx.Committed},
		"insert with a stamp": {func(tx *dbtx.Tx) error { return tx.DB().Create(&Token{Code: "a", Amount: 5}).Error }, dbtx.NotCommitted, dbtx.Committed},
		"insert":              {func(tx *dbtx.Tx) error { return tx.DB().Create(&Label{Code: "a", Amount: 5}).Error }, dbtx.NotCommitted, dbtx.Unresolved},
		"update with a stamp": {func(tx *dbtx.Tx) error { return tx.DB().Model(&Ware{ID: 1, Version: 1}).Update("left", 4).Error }, dbtx.NotCommitted, dbtx.Committed},
		"raw statement":       {func(tx *dbtx.Tx) error { return tx.DB().Exec("UPDATE wares SET left_over = 1").Error }, dbtx.Unresolved, dbtx.Unresolved},
	}
	for name, open := range servers {
		t.Run(name, func(t *testing.T) {
			direct, db, k := open(t)
			wantNil(t, direct.AutoMigrate(&Ware{}, &Token{}, &Label{}))
			wantNil(t, once.Migrate(bg, direct))
			wantNil(t, direct.Exec("ALTER TABLE wares ADD COLUMN left_over INT").Error)
			for what, r := range rows {
				for arrives, want := range map[bool]dbtx.Outcome{false: r.before, true: r.after} {
					switch stamped := strings.Contains(what, "stamp"); {
					case name == "PostgreSQL": // which knows the outcome by the number
						want = map[bool]dbtx.Outcome{false: dbtx.NotCommitted, true: dbtx.Committed}[arrives]
					case name == "MySQL":
					case name == "Vitess", name == "PgDog", !arrives, !stamped:
						want = dbtx.Unresolved
					}
					for _, table := range []string{"wares", "tokens", "labels", "belay_once"} {
						wantNil(t, direct.Exec("DELETE FROM "+table).Error)
					}
					wantNil(t, direct.Create(&Ware{ID: 1, Left: 5}).Error)
					tx := begin(t, db, dbtx.Options{Family: told[name]})
					for _, row := range []any{&Ware{ID: 1}, &Token{Code: "a"}, &Label{Code: "a"}} {
						wantNil(t, tx.Protect(row))
					}
					wantNil(t, r.write(tx))
					lose(t, tx, k, arrives)
					o, err := tx.Resolve(bg)
					if o != want {
						t.Errorf("%s, arrived %v: resolved as %v, %v, want %v", what, arrives, o, err, want)
					}
					if resembles := name != "PostgreSQL" && name != "MySQL"; resembles && o == dbtx.Unresolved && err == nil {
						t.Errorf("%s, arrived %v: no reason", what, arrives)
					}
				}
			}
		})
	}
}

// TestErrorAtCommitOfAResemblingServer: an error at COMMIT of a server that only resembles
// PostgreSQL is a rollback only if its documentation says so, also if it hides what it is and is told
// to be it.
func TestErrorAtCommitOfAResemblingServer(t *testing.T) {
	t.Parallel()
	for name, server := range map[string]struct {
		version string
		told    dialect.Family
		unknown map[string]bool // by the code
	}{
		"PostgreSQL":                {plain, "", map[string]bool{"40001": false, "40003": true, "23505": false}},
		"CockroachDB":               {cockroach, "", map[string]bool{"40001": false, "40003": true, "23505": true}},
		"CockroachDB that hides it": {plain, "CockroachDB", map[string]bool{"40001": false, "40003": true, "23505": true}},
		"CockroachDB in two names":  {cockroach, "YugabyteDB", map[string]bool{"40001": true, "40003": true, "23505": true}},
	} {
		t.Run(name, func(t *testing.T) {
			direct, db, _ := posesAsPostgres(server.version)(t)
			for code, unknown := range server.unknown {
				for _, statement := range []string{
					fmt.Sprintf("CREATE OR REPLACE FUNCTION fails() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'at COMMIT' USING ERRCODE = '%s'; END $$", code),
					"DROP TRIGGER IF EXISTS at_commit ON stocks",
					"CREATE CONSTRAINT TRIGGER at_commit AFTER INSERT ON stocks DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION fails()",
				} {
					wantNil(t, direct.Exec(statement).Error)
				}
				tx := begin(t, db, dbtx.Options{Family: server.told})
				wantNil(t, tx.Protect(&Stock{ID: 1}))
				wantNil(t, tx.DB().Create(&Stock{ID: 1, Left: 1}).Error)
				err := tx.Commit()
				if err == nil {
					t.Fatalf("%s: committed", code)
				}
				if unknown {
					wantIs(t, err, dbtx.ErrCommitUnknown)
					want := dbtx.Unresolved
					if name == "PostgreSQL" {
						want = dbtx.NotCommitted // by the number, which proves it there alone
					}
					if o, err := tx.Resolve(bg); o != want {
						t.Errorf("%s: resolved as %v, %v", code, o, err)
					}
				} else if errors.Is(err, dbtx.ErrCommitUnknown) {
					t.Errorf("%s: %v", code, err)
				}
			}
		})
	}
}

// posesAsPostgres returns a PostgreSQL that says that it is another server: functions stand
// before its own.
func posesAsPostgres(version string, functions ...string) func(*testing.T) (direct, db *gorm.DB, k *testdb.Link) {
	return func(t *testing.T) (direct, db *gorm.DB, k *testdb.Link) {
		t.Helper()
		dsn := teststack.Postgres(t)
		direct = testdb.OpenPostgres(t, dsn)
		prepare(t, direct)
		wantNil(t, direct.Exec("CREATE SCHEMA posing").Error)
		says := fmt.Sprintf(`CREATE FUNCTION posing.version() RETURNS text LANGUAGE sql AS $$ SELECT '%s' $$`, version)
		for _, f := range append(functions, says) {
			wantNil(t, direct.Exec(f).Error)
		}
		k = testdb.NewLink(t, testdb.AddrOf(t, dsn))
		u, err := url.Parse(k.Through(t, dsn))
		wantNil(t, err)
		q := u.Query()
		q.Set("search_path", "posing,pg_catalog,public")
		u.RawQuery = q.Encode()
		db = testdb.OpenPostgres(t, u.String())
		wantNil(t, dbtx.Install(db))
		return direct, db, k
	}
}

// posesAsMySQL returns a MariaDB or MySQL whose version, or the comment on it, has a name of eight
// letters in it. Without a name it poses as nothing.
func posesAsMySQL(name string) func(*testing.T) (direct, db *gorm.DB, k *testdb.Link) {
	return func(t *testing.T) (direct, db *gorm.DB, k *testdb.Link) {
		t.Helper()
		dsn := teststack.MySQL(t)
		direct = testdb.OpenMySQL(t, dsn)
		prepare(t, direct)
		k = testdb.NewLink(t, testdb.AddrOf(t, dsn))
		cfg, err := mysql.ParseDSN(k.Through(t, dsn))
		wantNil(t, err)
		cfg.Net = "posing as " + name
		mysql.RegisterDialContext(cfg.Net, func(ctx context.Context, addr string) (net.Conn, error) {
			c, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
			return posing{c, []byte(name)}, err
		})
		t.Cleanup(func() { mysql.DeregisterDialContext(cfg.Net) })
		db = testdb.OpenMySQL(t, cfg.FormatDSN())
		wantNil(t, dbtx.Install(db))
		return direct, db, k
	}
}

// named are the parts of versions and comments that a name takes the place of: of MariaDB, of
// Debian's MySQL and of its makers'.
var named = []string{"-MariaDB", "(Debian)", "MySQL Co"}

// posing is a connection to a server that calls itself otherwise.
type posing struct {
	net.Conn
	name []byte
}

func (p posing) Read(b []byte) (int, error) {
	n, err := p.Conn.Read(b)
	for _, part := range named {
		if len(p.name) == len(part) {
			copy(b, bytes.ReplaceAll(b[:n], []byte(part), p.name))
		}
	}
	return n, err
}

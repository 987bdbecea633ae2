package dbguard_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/internal/doctor"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/once"
)

// limits are what a DSN of MySQL must have.
const limits = "&timeout=5s&readTimeout=30s&writeTimeout=30s&innodb_lock_wait_timeout=20"

// Permit has keys that a binary collation keeps apart.
type Permit struct {
	ID   uint
	Code string `gorm:"size:32;not null;uniqueIndex"`
}

// openSound opens a database in which nothing is wrong.
func openSound(t *testing.T, dsn string) *gorm.DB {
	t.Helper()
	open, kind := testdb.OpenMySQL, "VARBINARY(32)"
	if testdb.IsPostgres(dsn) {
		open, kind = testdb.OpenPostgres, "text"
	}
	db := open(t, dsn)
	setPool(t, db, 8)
	wantNil(t, dbguard.Install(db))
	wantNil(t, db.AutoMigrate(&Stock{}))
	wantNil(t, db.Exec("DROP TABLE IF EXISTS permits").Error)
	wantNil(t, db.Exec("CREATE TABLE permits (id int PRIMARY KEY, code "+kind+" NOT NULL UNIQUE)").Error)
	return db
}

func setPool(t *testing.T, db *gorm.DB, most int) {
	t.Helper()
	pool, err := db.DB()
	wantNil(t, err)
	pool.SetMaxOpenConns(most)
	pool.SetMaxIdleConns(most)
}

// wantFound checks that found has findings of the check alone, which say all of these; or
// nothing at all if check is "".
func wantFound(t *testing.T, found []doctor.Finding, check string, says ...string) {
	t.Helper()
	if check == "" && len(found) == 0 {
		return
	}
	others := func(f doctor.Finding) bool { return f.Check != check || f.Fix == "" }
	text := fmt.Sprint(found)
	if len(found) == 0 || slices.ContainsFunc(found, others) {
		t.Errorf("found %v, want %q alone", text, check)
	}
	for _, part := range says {
		if !strings.Contains(text, part) {
			t.Errorf("found %v, want %q in it", text, part)
		}
	}
}

// TestDiagnose makes one mistake after the other.
func TestDiagnose(t *testing.T) {
	models := []any{&Stock{}, &Permit{}}
	for name, server := range map[string]struct {
		dsn    func(testing.TB) string
		limits string
	}{
		"mysql":    {teststack.MySQL, limits},
		"postgres": {teststack.Postgres, "&connect_timeout=5&statement_timeout=30000&idle_in_transaction_session_timeout=30000"},
	} {
		t.Run(name, func(t *testing.T) {
			dsn := server.dsn(t) + server.limits
			without := func(part string) string { return strings.Replace(dsn, part, "", 1) }
			for _, tt := range []struct {
				mistake, server string
				dsn             string
				make            func(*gorm.DB)
				check, says     string
			}{
				{mistake: "none"},
				{mistake: "isolation", server: "mysql", dsn: dsn + "&" + isolation(t, dsn) + "=%27READ-COMMITTED%27", check: "db-isolation", says: "READ-COMMITTED"},
				{mistake: "isolation", server: "postgres", dsn: dsn + "&default_transaction_isolation=serializable", check: "db-isolation", says: "serializable"},
				{mistake: "clock", server: "mysql", dsn: dsn + "&timestamp=1000000000", check: "db-clock", says: "behind this host's"},
				{mistake: "number", server: "mysql", dsn: dsn + "&pseudo_thread_id=99999999", check: "db-outcome", says: "another number than 99999999"},
				{mistake: "no limits", server: "mysql", dsn: without(limits), check: "db-timeouts", says: "add timeout=5s&readTimeout=30s&writeTimeout=30s&innodb_lock_wait_timeout=20"},
				{mistake: "one limit", server: "mysql", dsn: without("&readTimeout=30s"), check: "db-timeouts", says: "Fix: add readTimeout=30s"},
				{mistake: "short read", server: "mysql", dsn: strings.Replace(dsn, "readTimeout=30s", "readTimeout=5s", 1), check: "db-timeouts", says: "Fix: set innodb_lock_wait_timeout=3"},
				{mistake: "waits", server: "mysql", dsn: without("&innodb_lock_wait_timeout=20"), check: "db-timeouts", says: "innodb_lock_wait_timeout"},
				{mistake: "connect", server: "postgres", dsn: without("&connect_timeout=5"), check: "db-timeouts", says: "connect_timeout=5"},
				{mistake: "statement", server: "postgres", dsn: without("&statement_timeout=30000"), check: "db-timeouts", says: "SET statement_timeout"},
				{mistake: "idle", server: "postgres", dsn: without("&idle_in_transaction_session_timeout=30000"), check: "db-timeouts", says: "SET idle_in_transaction_session_timeout"},
				{mistake: "durability", server: "postgres", dsn: dsn + "&synchronous_commit=off", check: "db-durability", says: "synchronous_commit = on"},
				{mistake: "no pool", make: func(db *gorm.DB) { setPool(t, db, 0) }, check: "db-pool", says: "no limit"},
				{mistake: "one connection", make: func(db *gorm.DB) { setPool(t, db, 1) }, check: "db-pool", says: "one connection"},
				{mistake: "large pool", make: func(db *gorm.DB) { setPool(t, db, 1_000_000) }, check: "db-pool", says: "the server takes"},
				{mistake: "few idle", make: keepNoneIdle(t), check: "db-pool", says: "SetMaxIdleConns"},
				{mistake: "version", make: exec(t, "ALTER TABLE stocks DROP COLUMN version", "ALTER TABLE stocks ADD COLUMN version INT NOT NULL DEFAULT 1"), check: "db-version", says: "int"},
				{mistake: "no index", make: exec(t, "DROP TABLE permits", "CREATE TABLE permits (id int PRIMARY KEY, code int NOT NULL)"), check: "db-model", says: "missing"},
				{mistake: "collation", server: "mysql", make: exec(t, "ALTER TABLE permits MODIFY code varchar(32) COLLATE utf8mb4_general_ci NOT NULL"), check: "db-collation", says: "case or accents"},
			} {
				if tt.server != "" && tt.server != name {
					continue
				}
				t.Run(tt.mistake, func(t *testing.T) {
					if tt.dsn == "" {
						tt.dsn = dsn
					}
					db := openSound(t, tt.dsn)
					if tt.make != nil {
						tt.make(db)
						defer func() { wantNil(t, db.Migrator().DropTable("stocks", "permits")) }()
					}
					wantFound(t, dbguard.Diagnose(t.Context(), db, models...), tt.check, tt.says)
				})
			}
		})
	}
}

// isolation is what the server calls the isolation level, "" if it is PostgreSQL.
func isolation(t *testing.T, dsn string) (name string) {
	if testdb.IsPostgres(dsn) {
		return ""
	}
	wantNil(t, testdb.OpenMySQL(t, dsn).Raw("SHOW VARIABLES WHERE Variable_name IN ('tx_isolation', 'transaction_isolation')").Row().Scan(&name, new(string)))
	return name
}

// TestDiagnoseFamily: a server that only resembles PostgreSQL is reported. A PostgreSQL says that
// it is one, by a function before its own.
func TestDiagnoseFamily(t *testing.T) {
	t.Parallel()
	dsn := teststack.Postgres(t)
	direct := testdb.OpenPostgres(t, dsn)
	exec(t, "CREATE SCHEMA posing", `CREATE FUNCTION posing.version() RETURNS text LANGUAGE sql AS
		$$ SELECT 'CockroachDB CCL v23.1.11 (x86_64-pc-linux-gnu)' $$`)(direct)
	for path, want := range map[string]bool{"public": false, "posing,pg_catalog,public": true} {
		db := testdb.OpenPostgres(t, dsn+"&search_path="+path)
		found := dbguard.Diagnose(t.Context(), db)
		is := func(f doctor.Finding) bool {
			return f.Check == "db-family" && strings.Contains(f.String(), "it is CockroachDB")
		}
		if slices.ContainsFunc(found, is) != want {
			t.Errorf("with %s: %v", path, found)
		}
	}
}

func exec(t *testing.T, statements ...string) func(*gorm.DB) {
	return func(db *gorm.DB) {
		for _, s := range statements {
			wantNil(t, db.Exec(s).Error)
		}
	}
}

// keepNoneIdle has the pool open a connection for each statement.
func keepNoneIdle(t *testing.T) func(*gorm.DB) {
	return func(db *gorm.DB) {
		pool, err := db.DB()
		wantNil(t, err)
		pool.SetMaxIdleConns(1)
		for range 101 {
			a, err := pool.Conn(bg)
			wantNil(t, err)
			b, err := pool.Conn(bg)
			wantNil(t, err)
			wantNil(t, a.Close())
			wantNil(t, b.Close())
		}
	}
}

// TestDiagnoseRights: a role of PostgreSQL that may not end its own sessions.
func TestDiagnoseRights(t *testing.T) {
	dsn := teststack.Postgres(t)
	db := openSound(t, dsn)
	var role string // roles are the server's, not the database's
	wantNil(t, db.Raw("SELECT 'weak_' || current_database()").Row().Scan(&role))
	exec(t, "CREATE ROLE "+role,
		"REVOKE EXECUTE ON FUNCTION pg_terminate_backend FROM PUBLIC")(db)
	defer exec(t, "GRANT EXECUTE ON FUNCTION pg_terminate_backend TO PUBLIC", "DROP ROLE "+role)(db)
	weak := testdb.OpenPostgres(t, dsn+"&role="+role)
	found := dbguard.Diagnose(t.Context(), weak)
	if !slices.ContainsFunc(found, func(f doctor.Finding) bool { return f.Check == "db-outcome" }) {
		t.Errorf("found %v, want db-outcome", found)
	}
}

// TestDiagnoseDurability: a server whose crash undoes commits.
func TestDiagnoseDurability(t *testing.T) {
	for _, kind := range []string{"mariadb", "mysql"} {
		t.Run(kind, func(t *testing.T) {
			dsn := teststack.StartDatabase(t, "durability", kind).DSN + limits
			db := openSound(t, dsn)
			wantFound(t, dbguard.Diagnose(t.Context(), db, &Stock{}), "")
			exec(t, "SET GLOBAL innodb_flush_log_at_trx_commit = 2")(db)
			wantFound(t, dbguard.Diagnose(t.Context(), db, &Stock{}), "db-durability", "innodb_flush_log_at_trx_commit = 2")
			exec(t, "SET GLOBAL innodb_flush_log_at_trx_commit = 1")(db)
			if kind == "mariadb" {
				return // without a binary log
			}
			exec(t, "SET GLOBAL sync_binlog = 0")(db)
			wantFound(t, dbguard.Diagnose(t.Context(), db, &Stock{}), "db-durability", "sync_binlog = 0")
			exec(t, "SET GLOBAL sync_binlog = 1")(db)
			wantFound(t, dbguard.Diagnose(t.Context(), openSound(t, dsn+"&binlog_format=STATEMENT"), &Stock{}), "db-binlog", "ROW or MIXED")
		})
	}
}

// TestDiagnoseSaysWhatItCannotSee: nothing passes because it could not be looked at.
func TestDiagnoseSaysWhatItCannotSee(t *testing.T) {
	found := dbguard.Diagnose(t.Context(), openSound(t, teststack.MySQL(t)+limits))
	wantFound(t, found, "db-model", "unchecked", "no model was given")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	found = dbguard.Diagnose(ctx, openSound(t, teststack.MySQL(t)+limits), &Stock{})
	wantFound(t, found, "db-server", "context canceled")

	wantFound(t, dbguard.Diagnose(t.Context(), testdb.OpenSQLite(t, t.TempDir()+"/a.db"), &Stock{}), "db-model", "does not exist")
}

// TestDiagnoseOfRequests: a table that only the lock or a request can guard is no mistake where
// the service serves requests. Check takes it for one all the same.
func TestDiagnoseOfRequests(t *testing.T) {
	each(t, func(t *testing.T, db *gorm.DB) {
		wantNil(t, db.AutoMigrate(&Note{}))
		find := func() (found []doctor.Finding) {
			for _, f := range dbguard.Diagnose(t.Context(), db, &Note{}) {
				if f.Check == "db-model" {
					found = append(found, f)
				}
			}
			return found
		}
		wantFound(t, find(), "db-model", "error db-model")
		wantNil(t, once.Migrate(t.Context(), db))
		found := find()
		wantFound(t, found, "db-model", "note db-model", "no unique index", "guard.For or guard.Once", "httpguard", "dbguard.Version")
		if len(found) != 1 {
			t.Errorf("found %v", found)
		}
		if err := dbguard.Check(t.Context(), db, &Note{}); err == nil || !strings.Contains(err.Error(), "no unique index") {
			t.Errorf("Check: %v", err)
		}
	})
}

// Lodger has one live row per room, says the index, and any number, says the database.
type Lodger struct {
	ID        uint
	Room      string         `gorm:"size:32;not null;uniqueIndex:rd"`
	DeletedAt gorm.DeletedAt `gorm:"uniqueIndex:rd"`
}

// Guest has one live row per room.
type Guest struct {
	ID        uint
	Room      string `gorm:"size:32;not null;uniqueIndex:ra"`
	DeletedAt gorm.DeletedAt
	Alive     *int `gorm:"->;type:int GENERATED ALWAYS AS (CASE WHEN deleted_at IS NULL THEN 1 END) STORED;uniqueIndex:ra"`
}

// TestDiagnoseOfSoftDeletes: the fix is one that a soft delete allows.
func TestDiagnoseOfSoftDeletes(t *testing.T) {
	each(t, func(t *testing.T, db *gorm.DB) {
		guest := &Guest{}
		wantNil(t, db.AutoMigrate(&Lodger{}, guest))
		for range 2 {
			wantNil(t, db.Create(&Lodger{Room: "a"}).Error) // the database allows it
		}
		for _, tt := range []struct {
			model any
			says  []string
			not   string
		}{
			{&Lodger{}, []string{"error db-model", "all live rows have NULL in deleted_at", "gorm.io/plugin/soft_delete", "softDelete:milli"}, "make deleted_at NOT NULL"},
			{guest, []string{"warning db-model", "NULL in alive", "that are deleted"}, "make alive NOT NULL"},
		} {
			var found []doctor.Finding
			for _, f := range dbguard.Diagnose(t.Context(), db, tt.model) {
				if f.Check == "db-model" {
					found = append(found, f)
				}
			}
			if db.Name() == "sqlite" && len(found) == 0 && tt.model == any(guest) {
				continue // it does not list such a column
			}
			wantFound(t, found, "db-model", tt.says...)
			if len(found) != 1 || strings.Contains(fmt.Sprint(found), tt.not) {
				t.Errorf("%T: found %v", tt.model, found)
			}
		}
	})
}

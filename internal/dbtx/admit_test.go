package dbtx

import (
	"errors"
	"strings"
	"testing"

	"github.com/belaygo/belay/internal/dbtx/dialect"
)

var (
	admitted = []string{
		"", ";;", "SELECT 1", "INSERT INTO t VALUES ('COMMIT')", "UPDATE t SET a = 'x; COMMIT'",
		"SAVEPOINT sp1", "ROLLBACK TO SAVEPOINT sp1", "rollback work to sp1", "RELEASE SAVEPOINT sp1",
		"/* COMMIT */ SELECT 1", "-- COMMIT\nSELECT 1", "# COMMIT\nSELECT 1", "SELECT 1 -- ; COMMIT",
		"SELECT `commit` FROM t", `SELECT "a;" ";COMMIT"`, `SELECT 'it''s; COMMIT'`, `SELECT '\'; COMMIT'`,
		"CREATE TEMPORARY TABLE t (a int)", "CREATE OR REPLACE TEMPORARY TABLE t (a int)", "DROP TEMPORARY TABLE t",
		"CREATE TEMP TABLE t (a int)",
		"SET @a = 1", "SET NAMES utf8mb4", "SELECT 1 /* unfinished", "SELECT 'unfinished; COMMIT",
		"/*+ hint */ SELECT 1", "SELECT 1 /*/ ; COMMIT */", "REPLACE INTO t VALUES (1)", "CALL p()",
		"SET GLOBAL TRANSACTION ISOLATION LEVEL READ COMMITTED", "SELECT @@tx_isolation", "SELECT @@completion_type", "SET GLOBAL completion_type = 1", "SET @completion_type = 1", "SET GLOBAL TRANSACTION READ ONLY", "SET @isolation = 1", "SET @@GLOBAL.transaction_isolation = 'x'", "UPDATE t SET isolation = 1",
		"SELECT * FROM pragma_index_list('t')", "WITH x AS (SELECT 1) SELECT * FROM x",
	}
	refused = []string{
		"COMMIT", "commit", " \n\tCommit;", "/* a */ COMMIT", "-- a\nCOMMIT", "# a\nCOMMIT", "/*! COMMIT */",
		"/*!50000 COMMIT */", "/*M!100100 COMMIT */", "/**/COMMIT", ";COMMIT", "SELECT 1; COMMIT", "SELECT ';'; COMMIT",
		"SELECT 'it''s'; COMMIT", `SELECT '\\'; COMMIT`, "SELECT 1--1; COMMIT", "BEGIN", "START TRANSACTION",
		"ROLLBACK", "ROLLBACK AND CHAIN", "ROLLBACK; SELECT 1 TO", "END", "XA START 'x'",
		"SET autocommit = 0", "SET @a = 1, autocommit=1", "SET @@autocommit=1", "SET SESSION autocommit=1",
		"SET @@session.autocommit = 1", "SET `autocommit` = 0", "SET @@`Autocommit` = 0", "SET PASSWORD = 'x'", "CREATE TABLE t (a int)", "CREATE INDEX i ON t (a)",
		"DROP TABLE t", "DROP", "ALTER TABLE t ADD b int", "TRUNCATE t", "CREATE TABLE temp (a int)", "DROP TABLE temp",
		"CREATE TABLE IF NOT EXISTS temporary (a int)", "CREATE OR REPLACE TABLE temp (a int)", "RENAME TABLE a TO b", "LOCK TABLES t WRITE",
		"UNLOCK TABLES", "GRANT ALL ON x TO y", "ANALYZE TABLE t", "LOAD INDEX INTO CACHE t", "PREPARE TRANSACTION 'x'",
		"SET @a = 1" + strings.Repeat(", @a = b", 100) + ", autocommit = 1", "VACUUM", "ATTACH 'x' AS y",
		"SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED", "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE",
		"SET LOCAL TRANSACTION READ ONLY, ISOLATION LEVEL READ COMMITTED", "SET tx_isolation = 'x'",
		"SET @a = 1, @@session.transaction_isolation = 'x'", "SET @@tx_isolation = 'x'", "SET `tx_isolation` = 'x'",
		"SET completion_type = 1", "SET @@session.completion_type = 'CHAIN'", "SET SESSION TRANSACTION READ ONLY", "SET LOCAL TRANSACTION READ WRITE",
		"SET SESSION tx_read_only = 1", "SET @a = 1, `transaction_read_only` = 1",
		"USE other", "use `other`", "SELECT 1; USE other",
	}
)

func admitMySQL(query string) error { return admits("mysql", query) }

func admits(name, query string) error {
	d := dialect.Dialect{Name: name}
	return admissible(d, d.Statements(query))
}

func TestAdmissible(t *testing.T) {
	for _, q := range admitted {
		if err := admitMySQL(q); err != nil {
			t.Errorf("%q is refused: %v", q, err)
		}
	}
	for _, q := range refused {
		if err := admitMySQL(q); !errors.Is(err, ErrTxControl) {
			t.Errorf("%q: error is %v, want ErrTxControl", q, err)
		}
	}
	// Without backslash escapes this string ends before the semicolon.
	if err := admits("sqlite", `SELECT '\'; COMMIT`); !errors.Is(err, ErrTxControl) {
		t.Errorf("error is %v, want ErrTxControl", err)
	}
}

// TestCommitBehindQuotes: each database has quotes and comments of its own. No COMMIT is
// hidden behind them, and none is seen in them.
func TestCommitBehindQuotes(t *testing.T) {
	for _, tt := range []struct {
		database, query string
		want            error
	}{
		{"postgres", `SELECT E'\''; COMMIT; SELECT '\''`, ErrTxControl},
		{"postgres", `SELECT e'a''\'; COMMIT; --'`, nil},
		{"postgres", `SELECT E'a''b'; COMMIT; --'`, ErrTxControl},
		{"postgres", `SELECT like'\'; COMMIT; SELECT ''`, ErrTxControl},
		{"postgres", `SELECT $$'$$; COMMIT; SELECT $$'$$`, ErrTxControl},
		{"postgres", `SELECT $a$ $$ ; COMMIT; ' $a$, $1`, nil},
		{"postgres", `SELECT $1; COMMIT; SELECT $2`, ErrTxControl},
		{"postgres", "SELECT 5 # 3; COMMIT", ErrTxControl},
		{"postgres", "SELECT 1 --it's\n; COMMIT; --'", ErrTxControl},
		{"postgres", "SELECT 1 /*! ' */; COMMIT; /*! ' */", ErrTxControl},
		{"postgres", "SELECT 1 /* /* */ ; COMMIT */", nil},
		{"sqlite", "SELECT 1 --it's\n; COMMIT; --'", ErrTxControl},
		{"sqlite", "SELECT 1 /*! ' */; COMMIT; /*! ' */", ErrTxControl},
		{"mysql", `SELECT 'a''\'; COMMIT; '`, nil},
		{"mysql", "SELECT 1 # it's\n; COMMIT", ErrTxControl},
	} {
		if err := admits(tt.database, tt.query); !errors.Is(err, tt.want) {
			t.Errorf("%s: %s: error is %v, want %v", tt.database, tt.query, err, tt.want)
		}
	}
}

// TestDefaultsOfPostgres: what is set for the later transactions of a session stays in the
// pool.
func TestDefaultsOfPostgres(t *testing.T) {
	for query, want := range map[string]error{
		"SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY": ErrTxControl,
		"SET default_transaction_read_only = on":               ErrTxControl,
		"SET SESSION default_transaction_isolation TO 'x'":     ErrTxControl,
		`SET "default_transaction_deferrable" = on`:            ErrTxControl,
		"SET LOCAL default_transaction_read_only = on":         nil,
		"SET TRANSACTION READ ONLY":                            nil,
		"SET search_path = a":                                  ErrTxControl,
		`SET SESSION "search_path" TO a`:                       ErrTxControl,
		"SET SCHEMA 'a'":                                       ErrTxControl,
		"SET ROLE a":                                           ErrTxControl,
		"SET SESSION AUTHORIZATION a":                          ErrTxControl,
		"SET session_authorization = a":                        ErrTxControl,
		`SET SESSION "session_authorization" TO a`:             ErrTxControl,
		"SET LOCAL session_authorization = a":                  nil,
		"SET session.role = 'a'":                               nil,
		"SET SESSION session.role = 'a'":                       nil,
		"SET LOCAL search_path = a":                            nil,
		"SET LOCAL ROLE a":                                     nil,
		"SET LOCAL SESSION AUTHORIZATION a":                    nil,
		"SET app.role = 'a'":                                   nil,
		"SET application_name = 'role'":                        nil,
	} {
		if err := admits("postgres", query); !errors.Is(err, want) {
			t.Errorf("%s: error is %v, want %v", query, err, want)
		}
	}
}

// TestIsolationOfPostgres: there it is of the transaction that runs, and no snapshot
// is relied upon.
func TestIsolationOfPostgres(t *testing.T) {
	if err := admits("postgres", "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"); err != nil {
		t.Error(err)
	}
}

// FuzzAdmissible checks that no text hides a COMMIT that follows it as a
// statement of its own, and that what is refused stays refused behind it.
func FuzzAdmissible(f *testing.F) {
	for _, q := range append(append([]string(nil), admitted...), refused...) {
		f.Add(q)
	}
	f.Fuzz(func(t *testing.T, q string) {
		alone := admitMySQL(q)
		if alone != nil && !errors.Is(alone, ErrTxControl) {
			t.Fatalf("%q: error is %v", q, alone)
		}
		if admitMySQL("COMMIT; "+q) == nil {
			t.Errorf("COMMIT before %q is admitted", q)
		}
		if alone != nil && admitMySQL("SELECT 1; "+q) == nil {
			t.Errorf("%q is refused alone and admitted as a second statement", q)
		}
		if !strings.ContainsAny(q, "'\"`/#-\\") && admitMySQL(q+"; COMMIT") == nil {
			t.Errorf("COMMIT behind %q is admitted", q)
		}
	})
}

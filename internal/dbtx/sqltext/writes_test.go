package sqltext

import (
	"strings"
	"testing"
)

func TestWritesOf(t *testing.T) {
	for query, want := range map[string]string{
		"INSERT INTO a VALUES (1)":           "a",
		"insert  into `A` (b) SELECT 1":      "a",
		"REPLACE INTO a.b VALUES (1)":        "a.b",
		"UPDATE `s`.`t` SET x = 1":           "s.t",
		"UPDATE t SET x = 1":                 "t",
		"UPDATE t AS u SET x = 1":            "",
		"UPDATE t, u SET t.x = 1":            "",
		"UPDATE t JOIN u SET t.x = 1":        "",
		"DELETE FROM t WHERE a = 'FROM u'":   "t",
		"DELETE FROM t USING t JOIN u":       "",
		"DELETE t FROM t JOIN u":             "",
		"CALL p()":                           "",
		"/* x */ DELETE /* y */ FROM /**/ t": "t",
		"WITH x AS (SELECT 1) DELETE FROM t": "",
	} {
		if table, ok := Split(query, MySQL)[0].Writes(); !ok || table != want {
			t.Errorf("%s: table is %q, %v, want %q", query, table, ok, want)
		}
	}
	for _, query := range []string{"SELECT * FROM t FOR UPDATE", "SHOW TABLES", "WITH x AS (SELECT 'UPDATE') SELECT * FROM x", "SET @a = 1", "DELETED"} {
		if table, ok := Split(query, MySQL)[0].Writes(); ok {
			t.Errorf("%s: writes %q", query, table)
		}
	}
}

// TestReturnsFound: how long an upsert is does not hide what it returns.
func TestReturnsFound(t *testing.T) {
	long := "INSERT INTO t VALUES (" + strings.Repeat("DEFAULT, ", maxWords) + "1)"
	for query, want := range map[string]bool{
		"INSERT INTO t VALUES (1) ON DUPLICATE KEY UPDATE id = id RETURNING id": true,
		"INSERT INTO t VALUES (1) ON DUPLICATE KEY UPDATE id = id":              false,
		"INSERT IGNORE INTO t VALUES (1) RETURNING id":                          false,
		long + " ON DUPLICATE KEY UPDATE id = id RETURNING id":                  true,
		long + " ON DUPLICATE KEY UPDATE id = id":                               false,
		long + " RETURNING id":                                                  false,
	} {
		if got := Split(query, MySQL)[0].ReturnsFound(); got != want {
			t.Errorf("%s: %v, want %v", query, got, want)
		}
	}
}

func TestOnlyReads(t *testing.T) {
	long := "SELECT " + strings.Repeat("a_column, ", maxWords) + "id FROM t"
	for query, want := range map[string]bool{
		long:                                     true,
		long + " FOR UPDATE":                     false,
		long + " FOR SHARE":                      false,
		long + " LOCK IN SHARE MODE":             false,
		long + " INTO OUTFILE 'x'":               false,
		long + " WHERE id = NEXTVAL(s)":          false,
		"SELECT * FROM t WHERE a = 'FOR UPDATE'": true,
		"/* x */ select count(*) from t":         true,
		"SHOW VARIABLES":                         true,
		"SELECT * FROM t FOR UPDATE":             false,
		"SELECT * FROM t LOCK IN SHARE MODE":     false,
		"SELECT 1 INTO OUTFILE 'x'":              false,
		"SELECT NEXTVAL(s)":                      false,
		"SELECT NEXT VALUE FOR s":                false,
		"SELECT f()":                             false,
		"SELECT app.log('x'), count(*) FROM a.t": false,
		"SELECT 1 /*! FOR UPDATE */":             false,
		"WITH x AS (SELECT 1) DELETE FROM t":     false,
		"ANALYZE UPDATE t SET a = 1":             false,
		"SAVEPOINT a":                            false,
		"SET STATEMENT a = 1 FOR DELETE FROM t":  false,
		"INSERT INTO t VALUES (1)":               false,
		"CALL p()":                               false,
	} {
		if got := Split(query, MySQL)[0].OnlyReads(); got != want {
			t.Errorf("%s: only reads: %v, want %v", query, got, want)
		}
	}
}

func TestSetsPath(t *testing.T) {
	for query, want := range map[string]bool{
		"SET search_path = a":                         true,
		"SET LOCAL search_path TO a, b":               true,
		`SET "search_path" = a`:                       true,
		"SET SCHEMA 'a'":                              true,
		"SET LOCAL ROLE r":                            true,
		"SET SESSION AUTHORIZATION r":                 true,
		"SELECT set_config('search_path', 'a', TRUE)": true,
		"SET LOCAL lock_timeout = 5":                  false,
		"UPDATE t SET search_path = 'a'":              false,
		"SELECT search_path FROM t":                   false,
	} {
		if got := Split(query, Postgres)[0].SetsPath(); got != want {
			t.Errorf("%s: sets the path is %v, want %v", query, got, want)
		}
	}
}

func TestMayDelete(t *testing.T) {
	for query, want := range map[string]bool{
		"DELETE FROM t":                              true,
		"REPLACE INTO t VALUES (1)":                  true,
		"INSERT OR REPLACE INTO t VALUES (1)":        true,
		"UPDATE OR REPLACE t SET a = 1":              true,
		"MERGE INTO t USING u ON TRUE":               true,
		"CALL p()":                                   true,
		"WITH x AS (DELETE FROM t) SELECT 1":         true,
		"INSERT INTO t VALUES (1)":                   false,
		"INSERT INTO t SELECT a FROM u WHERE a OR b": false,
		"UPDATE t SET a = 1 WHERE b OR c":            false,
	} {
		if got := Split(query, Standard)[0].MayDelete(); got != want {
			t.Errorf("%s: may delete is %v, want %v", query, got, want)
		}
	}
}

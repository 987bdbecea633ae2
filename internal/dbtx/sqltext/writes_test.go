package sqltext

import "testing"

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

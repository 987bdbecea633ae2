package sqltext

import "testing"

func TestCalls(t *testing.T) {
	for query, want := range map[string]bool{
		"SELECT sell(1)":                                    true,
		`SELECT "count"(*) FROM orders`:                     true, // a name in quotes may be anybody's
		"SELECT a FROM orders WHERE left_of(b) > 1":         true,
		"SELECT count(*), date_add(a, b) FROM orders":       false,
		"WITH x AS MATERIALIZED (SELECT 1) SELECT * FROM x": false,
		"WITH x (a) AS (SELECT 1) SELECT * FROM x":          false,
		`WITH "x" (a) AS (SELECT 1) SELECT * FROM x`:        false,
		"WITH RECURSIVE t(n) AS (SELECT 1) SELECT * FROM t": false,
		"SELECT * FROM (VALUES (1)) AS v (a)":               false,
		"SELECT * FROM t PARTITION (p0)":                    false,
		"SELECT 5::bit(3), ARRAY(SELECT 1), trunc(2.5)":     false,
		"SELECT * FROM t WHERE MATCH (a) AGAINST ('b')":     false,
		"EXPLAIN (ANALYZE) SELECT 1":                        false,
	} {
		if got := Split(query, Standard)[0].Calls(); got != want {
			t.Errorf("%s: calls is %v, want %v", query, got, want)
		}
	}
}

// TestCallsOfASchema: a function of the program may have the name of a known one.
func TestCallsOfASchema(t *testing.T) {
	for query, want := range map[string]bool{
		"SELECT app.log('x')":                            true,
		"SELECT a.id, count(*) FROM app.t":               false,
		"SELECT pg_catalog.set_config('a', 'b', false)":  false,
		"SELECT pg_catalog.count(*) FROM pg_catalog.log": false,
	} {
		if got := Split(query, Postgres)[0].Calls(); got != want {
			t.Errorf("%s: calls: %v, want %v", query, got, want)
		}
	}
}

// TestCallsOfAWrite: the columns of an INSERT are in parentheses, too.
func TestCallsOfAWrite(t *testing.T) {
	for query, want := range map[string]bool{
		"INSERT INTO t (a) VALUES (1)":                                      false,
		`INSERT INTO "s"."t" ("a") VALUES (1) ON CONFLICT ("a") DO NOTHING`: false,
		"INSERT IGNORE INTO t (a) SELECT count(*) FROM u":                   false,
		"INSERT INTO s.t VALUES (sell(1))":                                  true,
		"INSERT INTO t (a) SELECT conflict(b) FROM u":                       true,
		"UPDATE t SET a = sell(1)":                                          true,
		"DELETE FROM t WHERE a IN (1) AND sell(b)":                          true,
	} {
		if got := Split(query, Postgres)[0].Calls(); got != want {
			t.Errorf("%s: calls: %v, want %v", query, got, want)
		}
	}
}

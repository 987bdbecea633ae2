package sqltext

import "testing"

func TestOpaque(t *testing.T) {
	for query, want := range map[string]bool{
		"CALL p()":                   true,
		"/*!50000 CALL p() */":       true,
		"EXECUTE IMMEDIATE 'COMMIT'": true,
		"EXECUTE s":                  true,
		"SET STATEMENT max_statement_time=5 FOR CALL p": true,
		"IF 1 THEN CALL p()":                            true,
		"SET DEFAULT ROLE r":                            true,
		"IMPORT TABLE FROM 'x'":                         true,
		"PREPARE s FROM 'COMMIT'":                       false,
		"(SELECT 1) UNION (SELECT 2)":                   false,
		"SELECT f(1)":                                   false,
		"SET @a = f(1)":                                 false,
		"CREATE TEMPORARY TABLE t (a int)":              false,
		"DO f(1)":                                       false,
	} {
		if got := Split(query, MySQL)[0].Opaque(); got != want {
			t.Errorf("%s: opaque is %v, want %v", query, got, want)
		}
	}
}

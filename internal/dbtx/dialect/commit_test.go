package dialect

import (
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// TestNotCommittedOfPostgres: only a code that says that the transaction was rolled back
// proves it. Others come in place of an answer.
func TestNotCommittedOfPostgres(t *testing.T) {
	for code, want := range map[string]bool{
		"40001": true, "40P01": true, "23505": true, "40002": true, "25P02": true,
		"40003": false, // "statement completion unknown", of CockroachDB
		"25P04": false, // "transaction timeout", which may come when the COMMIT is executed
		"08007": false, "53100": false, "57P01": false, "58030": false, "XX000": false,
	} {
		if got := PostgreSQL.NotCommitted(&pgconn.PgError{Code: code}); got != want {
			t.Errorf("%s: not committed is %v, want %v", code, got, want)
		}
	}
}

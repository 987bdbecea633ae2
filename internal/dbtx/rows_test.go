package dbtx_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/belaygo/belay/internal/dbtx"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
)

// TestSessionThatIsSentFewRows: a limit of the session would hide a column of an index, and the
// session's own variables. No transaction begins.
func TestSessionThatIsSentFewRows(t *testing.T) {
	dsn := teststack.MySQL(t)
	for limit, refused := range map[int]bool{1: true, 5: true, 50: true, 1000: false} {
		db := testdb.OpenMySQL(t, fmt.Sprint(dsn, "&sql_select_limit=", limit))
		wantNil(t, dbtx.Install(db))
		tx, err := dbtx.Begin(bg, db, dbtx.Options{})
		if refused != (err != nil) || refused && !strings.Contains(err.Error(), "sql_select_limit") {
			t.Errorf("a limit of %d: error is %v", limit, err)
		}
		if err == nil {
			tx.Rollback()
		}
	}
}

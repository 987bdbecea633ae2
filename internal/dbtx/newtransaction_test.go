package dbtx_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/belaygo/belay/internal/dbtx"
	"github.com/belaygo/belay/internal/testdb"
)

// The tries on the broken connection and on another one end within one EndTimeout, of which
// the first has half.
func TestNewTransactionsShareATimeout(t *testing.T) {
	db := testdb.OpenSQLite(t, filepath.Join(t.TempDir(), "a.db"))
	wantNil(t, dbtx.Install(db))
	const timeout = time.Hour
	tx := begin(t, db, dbtx.Options{EndTimeout: timeout})
	var ends []time.Time
	err := tx.InNewTransaction(func(ctx context.Context) error {
		end, _ := ctx.Deadline()
		if len(ends) == 0 {
			if left := time.Until(end); left > timeout/2 {
				t.Errorf("the first try has %v, want %v at most", left, timeout/2)
			}
			tx.Break()
		}
		ends = append(ends, end)
		return nil
	})
	wantNil(t, err)
	if len(ends) != 2 {
		t.Fatalf("%d tries, want 2", len(ends))
	}
	if more := ends[1].Sub(ends[0]); more > timeout/2 {
		t.Errorf("the second try may end %v after the first, want %v at most", more, timeout/2)
	}
}

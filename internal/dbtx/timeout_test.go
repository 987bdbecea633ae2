package dbtx

import (
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/belaygo/belay/internal/dbtx/dialect"
	"github.com/belaygo/belay/internal/dbtx/pinned"
)

// TestTimeoutThatRollsBack: with innodb_rollback_on_timeout a lock wait that takes
// too long undoes everything, and what comes next would commit alone.
func TestTimeoutThatRollsBack(t *testing.T) {
	timeout := &mysql.MySQLError{Number: 1205}
	for _, rollsBack := range []bool{false, true} {
		tx := &Tx{conn: &pinned.Conn{Session: dialect.Session{TimeoutRollsBack: rollsBack}}}
		tx.Learn(timeout)
		if poisoned := tx.Poisoned() != nil; poisoned != rollsBack {
			t.Errorf("where a timeout rolls back is %v, the transaction is poisoned: %v", rollsBack, poisoned)
		}
	}
}

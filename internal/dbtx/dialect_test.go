package dbtx

import (
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/belaygo/belay/internal/dbtx/dialect"
	"github.com/belaygo/belay/internal/dbtx/protected"
)

// TestTimeoutThatRollsBack: with innodb_rollback_on_timeout a lock wait that takes
// too long undoes everything, and what comes next would commit alone.
func TestTimeoutThatRollsBack(t *testing.T) {
	timeout := &mysql.MySQLError{Number: 1205}
	for _, rollsBack := range []bool{false, true} {
		tx := &Tx{conn: &conn{session: dialect.Session{TimeoutRollsBack: rollsBack}}}
		tx.learn(timeout)
		if poisoned := tx.Poisoned() != nil; poisoned != rollsBack {
			t.Errorf("where a timeout rolls back is %v, the transaction is poisoned: %v", rollsBack, poisoned)
		}
	}
}

// TestUnheardOfSavepoint: when the transaction goes back to a savepoint that was set
// behind its back, nobody knows what is left of its writes.
func TestUnheardOfSavepoint(t *testing.T) {
	tx := &Tx{rows: protected.NewRows(nil), writes: []write{{how: plain, table: "orders", rows: []*protected.Row{{}}}}}
	if c := tx.Coverage(); !c.Covered {
		t.Fatalf("coverage is %+v", c)
	}
	tx.rows.Add(&protected.Row{Table: "stocks"})
	tx.rolledBackTo("nowhere")
	if c := tx.Coverage(); c.Covered {
		t.Errorf("coverage is %+v, want none", c)
	}
}

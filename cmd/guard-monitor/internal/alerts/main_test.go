package alerts_test

import (
	"os"
	"testing"

	"github.com/go-sql-driver/mysql"
	"go.uber.org/goleak"
)

// childEnv makes this program, started by a test of its own, do the part of one
// process instead: that process is killed.
const childEnv = "BELAY_ALERTS_CHILD"

func TestMain(m *testing.M) {
	if part := os.Getenv(childEnv); part != "" {
		os.Exit(child(part))
	}
	_ = mysql.SetLogger(&mysql.NopLogger{}) // it would tell of every connection that a fault cuts
	goleak.VerifyTestMain(m)
}

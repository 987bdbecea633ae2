package belay_test

import (
	"testing"
	"time"

	"github.com/belaygo/belay"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/lock/memlock"
	"github.com/belaygo/belay/once"
)

// guard-monitor learns how many calls are pending, and of each that is undecided, though nobody repeats
// its request.
func TestUndecidedCallIsReported(t *testing.T) {
	type report struct {
		Verdict, Key string
		Call         *struct{ ID, Operation string }
		Calls        struct {
			Table              string
			Pending, Undecided int
		}
	}
	monitor, reports := takesAll[report](t)
	db := testdb.OpenSQLite(t, t.TempDir()+"/shop.db")
	testdb.WantNil(t, once.MigrateCalls(t.Context(), db))
	testdb.WantNil(t, db.Exec("INSERT INTO belay_pending (request, attempt, print, operation, since_ms, until_ms, tries) VALUES (zeroblob(32), 1, zeroblob(1), 'pay', 1, 2, 3)").Error)
	open(t, belay.Config{Service: "shop", DB: db, Engine: memlock.New(), Monitor: monitor, MonitorToken: "0123456789abcdef", Calls: true})
	pending, err := once.Open(t.Context(), db, 1)
	testdb.WantNil(t, err)
	counted, told := false, false
	for late := time.After(limit); !counted || !told; {
		select {
		case got := <-reports:
			counted = counted || got.Calls.Table == "belay_pending" && got.Calls.Pending == 1 && got.Calls.Undecided == 1
			told = told || got.Verdict == "undecided" && got.Key == pending[0].Key && got.Call != nil && got.Call.Operation == "pay" && got.Call.ID != ""
		case <-late:
			t.Fatalf("counted: %v, reported: %v", counted, told)
		}
	}
}

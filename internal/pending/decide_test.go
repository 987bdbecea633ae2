package pending_test

import (
	"errors"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/pending"
	"github.com/belaygo/belay/internal/sqldb"
	"github.com/belaygo/belay/internal/testdb"
)

// TestDecide: a result is stored once, and replaced only on purpose. Whoever has read a result that is
// replaced cannot settle it, while a late call can settle its own beside a decision.
func TestDecide(t *testing.T) {
	t.Parallel()
	testdb.EachWithPostgres(t, func(t *testing.T, open func(...gorm.Option) *gorm.DB) {
		db := open()
		pool, err := db.DB()
		testdb.WantNil(t, err)
		d, _ := sqldb.Of(db.Name())
		in := sqldb.New(pool, d)
		testdb.WantNil(t, pending.Migrate(t.Context(), in))
		request := make([]byte, 32)
		_, err = in.Exec(t.Context(), "INSERT INTO belay_pending (request, attempt, print, operation, since_ms, tries) VALUES (?, 1, ?, 'pay', 1, 1)", request, []byte("p"))
		testdb.WantNil(t, err)
		read := func() pending.Listed {
			t.Helper()
			rows, err := pending.List(t.Context(), in, 9)
			testdb.WantNil(t, err)
			if len(rows) != 1 {
				t.Fatalf("%d rows, want 1", len(rows))
			}
			return rows[0]
		}
		undecided, right := read(), pending.Result{Body: []byte("1")}
		testdb.WantNil(t, pending.Decide(t.Context(), in, undecided, right))
		decided := read()
		if decided.Attempt != 1 || !decided.Answered {
			t.Errorf("decided: %+v, want the attempt of the call", decided)
		}
		if err := pending.Decide(t.Context(), in, undecided, right); !errors.Is(err, pending.ErrTaken) {
			t.Errorf("a second decision: %v", err)
		}
		// Of a call that has answered, calls could begin for another hour.
		_, err = in.Exec(t.Context(), "UPDATE belay_pending SET until_ms = "+in.Now(time.Millisecond)+" + 3600000")
		testdb.WantNil(t, err)
		testdb.WantNil(t, pending.Decide(t.Context(), in, decided, right)) // by the same one
		testdb.WantNil(t, pending.Decide(t.Context(), in, read(), pending.Result{Refused: true, Body: []byte("2")}))
		if err := pending.Settle(t.Context(), pool, d, request, decided.Attempt); !errors.Is(err, pending.ErrTaken) {
			t.Errorf("a replaced result is settled: %v", err)
		}
		s, err := pending.Find(t.Context(), in, request)
		testdb.WantNil(t, err)
		if s == nil || s.Result == nil || !s.Result.Refused || string(s.Result.Body) != "2" {
			t.Errorf("the row is %+v", s)
		}
		testdb.WantNil(t, pending.Settle(t.Context(), pool, d, request, s.Attempt))
	})
}

package promises_test

import (
	"testing"
	"time"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/internal/testmetric"
	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/once"
)

// TestForWithAMark: a mark is a hint that the request is known. What is known of it decides,
// whoever set the mark.
func TestForWithAMark(t *testing.T) {
	t.Parallel()
	withOnce(t, func(e *env) {
		remember := guard.Remember(time.Minute)
		for _, key := range []string{"sku:1", printed("a").Key()} {
			wantNil(e.t, e.db.Exec("DELETE FROM belay_once").Error)
			serve := func(r once.Request, op guard.Op) error {
				return e.Do(bg, key, op, guard.For(r), remember, guard.Also(key))
			}
			wantNil(e.t, serve(printed("a", "1"), takeOne(1)))
			err := serve(printed("a", "1"), e.never())
			wantIs(e.t, err, guard.ErrDuplicate)
			wantIs(e.t, err, lockengine.ErrMarked)
			wantIs(e.t, serve(printed("a", "2"), e.never()), guard.ErrMismatch)
			wantNil(e.t, e.db.Exec("DELETE FROM belay_once").Error) // as if the database had been restored
			wantNil(e.t, serve(printed("a", "2"), takeOne(1)))
			wantIs(e.t, serve(printed("a", "1"), e.never()), guard.ErrMismatch)
		}
		wantNil(e.t, e.Do(bg, "sku:1", takeOne(1), guard.For(printed("b")), remember)) // the mark is another request's
		e.wantTaken(5)
		e.wantNoEvent()
	})
}

// TestOnceIsOneCall: a Once that finds its mark is one call, also if the table knows nothing
// of the request.
func TestOnceIsOneCall(t *testing.T) {
	t.Parallel()
	withOnce(t, func(e *env) {
		var want float64
		for range 3 {
			want++
			_, err := guard.Once(bg, e.Guard.Guard, request("a"), sells(1))
			wantNil(e.t, err)
			wantNil(e.t, e.db.Exec("DELETE FROM belay_answer").Error)
			wantNil(e.t, e.db.Exec("DELETE FROM belay_once").Error)
			if got := testmetric.Sum(e.t, e.Guard.Guard, "belay_guard_operations_total"); got != want {
				e.t.Errorf("%v calls are counted, want %v", got, want)
			}
		}
		e.wantTaken(3)
	})
}

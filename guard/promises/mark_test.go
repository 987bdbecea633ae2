package promises_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/lock/lockengine"
)

// TestOnceOfAMarkedOther: an error of the operation that says that another key is marked is
// no reason to run it again.
func TestOnceOfAMarkedOther(t *testing.T) {
	t.Parallel()
	withOnce(t, func(e *env) {
		ran := 0
		_, err := guard.Once(bg, e.Guard.Guard, request("a"), func(context.Context, *gorm.DB) (receipt, error) {
			ran++
			return receipt{}, fmt.Errorf("send mail: %w", lockengine.ErrMarked)
		})
		wantIs(e.t, err, lockengine.ErrMarked)
		if ran != 1 {
			t.Errorf("the operation ran %d times, want 1", ran)
		}
	})
}

// TestOnceMismatchIsNoDuplicate: other content under one id is not "done before", with the
// mark and without it.
func TestOnceMismatchIsNoDuplicate(t *testing.T) {
	t.Parallel()
	withOnce(t, func(e *env) {
		_, err := guard.Once(bg, e.Guard.Guard, printed("a", "1"), sells(1))
		wantNil(e.t, err)
		for _, mark := range []time.Duration{time.Minute, -1} {
			_, err = guard.Once(bg, e.Guard.Guard, printed("a", "2"), e.neverSells(), guard.Remember(mark))
			if got := guard.ResultOf(err); got != "mismatch" || errors.Is(err, guard.ErrDuplicate) {
				t.Errorf("mark %v: %v is %q, want mismatch", mark, err, got)
			}
		}
	})
}

// TestOnceRemembersForLonger: the mark is a hint, also if the caller says how long it is
// kept.
func TestOnceRemembersForLonger(t *testing.T) {
	t.Parallel()
	withOnce(t, func(e *env) {
		for range 2 {
			_, err := guard.Once(bg, e.Guard.Guard, request("a"), sells(1), guard.Remember(time.Hour))
			wantNil(e.t, err)
			wantNil(e.t, e.db.Exec("DELETE FROM belay_answer").Error) // as if the database had been restored
			wantNil(e.t, e.db.Exec("DELETE FROM belay_once").Error)
		}
		e.wantTaken(2)
	})
}

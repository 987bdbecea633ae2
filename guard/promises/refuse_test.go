package promises_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/once"
)

// TestRefuseAfterAConflict: an operation may answer a conflict that it has met with a
// refusal, on every database, whether the row is protected or not.
func TestRefuseAfterAConflict(t *testing.T) {
	t.Parallel()
	withOnce(t, func(e *env) {
		e.create(&Order{No: "n"})
		for _, writes := range []bool{true, false} {
			for _, opts := range [][]guard.Option{nil, {guard.Also("order:n", &Order{No: "n"})}} {
				r := request(fmt.Sprint(writes, len(opts)))
				got, err := guard.Once(bg, e.Guard.Guard, r, func(ctx context.Context, tx *gorm.DB) (receipt, error) {
					if writes {
						if _, err := sells(1)(ctx, tx); err != nil {
							return receipt{}, err
						}
					}
					if err := guard.Insert(&Order{No: "n"}).Run(ctx, tx); err == nil {
						t.Error("no conflict")
					}
					return receipt{}, guard.Refuse(receipt{Note: "there is one"})
				}, opts...)
				want := guard.Answer[receipt]{Value: receipt{Note: "there is one"}, Refused: true}
				wantAnswer(e.t, got, err, want)
				want.Replayed = true
				got, err = guard.Once(bg, e.Guard.Guard, r, e.neverSells(), guard.Remember(-1))
				wantAnswer(e.t, got, err, want)
			}
		}
		e.wantTaken(0)
		e.wantNoEvent()
	})
}

// TestOnceSwallowsAConflict: an operation that goes on after a conflict where the database
// has aborted the transaction gets the conflict, as with Do.
func TestOnceSwallowsAConflict(t *testing.T) {
	t.Parallel()
	eachServer(t, func(e *env) {
		if e.db.Name() != "postgres" {
			return
		}
		wantNil(e.t, once.Migrate(bg, e.db))
		e.create(&Order{No: "n"})
		_, err := guard.Once(bg, e.Guard.Guard, request("a"), func(ctx context.Context, tx *gorm.DB) (receipt, error) {
			_ = guard.Insert(&Order{No: "n"}).Run(ctx, tx)
			return receipt{}, nil
		})
		if _, ok := errors.AsType[*dbguard.ConflictError](err); !ok {
			t.Errorf("error is %v, want the conflict", err)
		}
	})
}

// TestRefusedIsNotServed: a request that Once has refused has not taken effect, whoever asks.
func TestRefusedIsNotServed(t *testing.T) {
	t.Parallel()
	withOnce(t, func(e *env) {
		r := request("a")
		got, err := guard.Once(bg, e.Guard.Guard, r, func(context.Context, *gorm.DB) (receipt, error) {
			return receipt{}, guard.Refuse(receipt{Note: "declined"})
		})
		wantAnswer(e.t, got, err, guard.Answer[receipt]{Value: receipt{Note: "declined"}, Refused: true})
		if served, err := e.Served(bg, r); served || err != nil {
			t.Errorf("Served is %v, %v", served, err)
		}
		take := guard.Update(&Stock{ID: 1}, func(s *Stock) error { s.Left--; return nil })
		for name, err := range map[string]error{
			"Do":              e.Do(bg, "stock:1", takeOne(1), guard.For(r)),
			"Do, marked":      e.Do(bg, r.Key(), takeOne(1), guard.For(r), guard.Remember(time.Minute)),
			"Apply, combined": e.Apply(bg, "stock:1", take, guard.For(r), guard.Combine(), guard.Wait(time.Minute)),
		} {
			if !errors.Is(err, guard.ErrMismatch) || errors.Is(err, guard.ErrDuplicate) {
				t.Errorf("%s: %v, want ErrMismatch", name, err)
			}
		}
		e.wantTaken(0)
		e.wantNoEvent()
	})
}

package promises_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/once"
)

// TestReservationMeetsARow: a row that Reserve finds, or an error of its own, says nothing of the request.
func TestReservationMeetsARow(t *testing.T) {
	t.Parallel()
	withCalls(t, func(e *paying) {
		e.create(&Order{No: "x"})
		tries := 0
		e.reserve = func(ctx context.Context, tx *gorm.DB, _ int) error {
			tries++
			return guard.Insert(&Order{No: "x"}).Run(ctx, tx)
		}
		_, err := e.buy().Run(bg, e.Guard.Guard, printed("a", "5"), 5, guard.Also("order:x", &Order{No: "x"}))
		if wantIs(e.t, err, guard.ErrExists); errors.Is(err, guard.ErrDuplicate) || tries != 1 {
			e.t.Errorf("after %d tries: %v", tries, err)
		}
		e.reserve = func(context.Context, *gorm.DB, int) error { return guard.ErrDuplicate }
		if _, err = e.run("b", 5); err == nil || errors.Is(err, guard.ErrDuplicate) {
			e.t.Errorf("error is %v, want one that is no ErrDuplicate", err)
		}
		if e.calls != 0 || len(e.pending()) != 0 {
			e.t.Errorf("%d calls, pending are %v", e.calls, e.pending())
		}
	})
}

// TestOwnErrorOfDo: an error of another call that Do has made says nothing of the request, which is open.
func TestOwnErrorOfDo(t *testing.T) {
	t.Parallel()
	withCalls(t, func(e *paying) {
		for _, other := range []error{guard.ErrDuplicate, guard.ErrExists, guard.ErrMismatch, once.ErrRequest} {
			e.fails = fmt.Errorf("of the ledger: %w", other)
			_, err := e.run("a", 5)
			wantIs(e.t, err, guard.ErrPending)
			if errors.Is(err, other) || !strings.Contains(err.Error(), e.fails.Error()) {
				e.t.Errorf("error is %v, want one with its text, and not itself", err)
			}
		}
		e.fails = nil
		e.settles(5)
	})
}

// TestPrintOfAnotherVersion: a program that makes its prints of other parts goes on with what an older one
// has begun, whether the provider has answered or not.
func TestPrintOfAnotherVersion(t *testing.T) {
	t.Parallel()
	failure := errors.New("fails")
	for name, fail := range map[string]func(e *paying, err error){
		"without an answer": func(e *paying, err error) { e.cut = err },
		"with an answer":    func(e *paying, err error) { e.settleFails = err },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			withCalls(t, func(e *paying) {
				fail(e, failure)
				_, err := e.run("a", 5)
				wantIs(e.t, err, guard.ErrPending)
				fail(e, nil)
				r := printed("a")
				r.Print = once.PrintOf(2, []byte("5 euros"))
				got, err := e.buy().Run(bg, e.Guard.Guard, r, 5, guard.Also("sku:1", &Stock{ID: 1}))
				wantAnswer(e.t, got, err, guard.Answer[receipt]{Value: receipt{Note: "charge 1 of 5"}})
				e.paid()
			})
		})
	}
}

// TestResultOutlivesAPanic: nobody calls again when Settle has panicked.
func TestResultOutlivesAPanic(t *testing.T) {
	t.Parallel()
	withCalls(t, func(e *paying) {
		c := e.buy()
		c.Settle = func(context.Context, *gorm.DB, int, guard.Outcome[string]) (receipt, error) { panic("dies") }
		func() {
			defer func() {
				if recover() == nil {
					e.t.Error("no panic")
				}
			}()
			_, _ = c.Run(bg, e.Guard.Guard, printed("a", "5"), 5, guard.Also("sku:1", &Stock{ID: 1}))
		}()
		e.forget()
		e.passes("lease_ms", "until_ms")
		e.settles(1)
	})
}

// TestDecidedByHand: what the guide says of an undecided request.
func TestDecidedByHand(t *testing.T) {
	t.Parallel()
	withCalls(t, func(e *paying) {
		e.cut = errors.New("no answer")
		for tries := 1; tries < 3; tries++ {
			_, err := e.run("a", 5)
			if p, ok := errors.AsType[*guard.PendingError](err); !ok || p.Tries != tries || p.Undecided {
				e.t.Errorf("error is %+v, want one after %d tries", err, tries)
			}
		}
		e.passes("until_ms")
		_, err := e.run("a", 5)
		if p, ok := errors.AsType[*guard.PendingError](err); !ok || !p.Undecided {
			e.t.Errorf("error is %v, want an undecided one", err)
		}
		wantNil(e.t, e.db.Exec(`UPDATE belay_pending SET answered = 1, body = '"charge 1 of 5"'`).Error)
		e.settles(2)
	})
}

// TestInterceptedReservation: Reserve makes a refusal of a conflict that comes of a lost lock. The
// refusal is not stored.
func TestInterceptedReservation(t *testing.T) {
	t.Parallel()
	withCalls(t, func(e *paying) {
		if e.db.Name() == "sqlite" { // one transaction writes at a time
			return
		}
		peer := e.Peer(e.t, e.db)
		e.reserve = func(ctx context.Context, tx *gorm.DB, _ int) error {
			err := guard.Update(&Stock{ID: 1}, func(s *Stock) error {
				e.Forget("sku:1")
				wantNil(e.t, peer.Do(bg, "sku:1", takeOne(1)))
				s.Left--
				return nil
			}).Run(ctx, tx)
			if err != nil {
				return guard.Refuse(receipt{Note: "sold out"})
			}
			return nil
		}
		_, err := e.run("a", 5)
		wantIs(e.t, err, guard.ErrIntercepted)
		e.reserve = nil
		got, err := e.run("a", 5)
		wantAnswer(e.t, got, err, guard.Answer[receipt]{Value: receipt{Note: "charge 1 of 5"}})
	})
}

// TestRefusedBehindAReservation: a process that shares no lock has reserved between the refusal of
// Reserve and its storing.
func TestRefusedBehindAReservation(t *testing.T) {
	t.Parallel()
	withCalls(t, func(e *paying) {
		var o beforeDo
		g, _ := e.dbOnly(guard.Config{Observer: &o})
		e.reserve = func(context.Context, *gorm.DB, int) error {
			e.reserve = nil
			o.f = func() {
				e.cut = errors.New("cut")
				_, err := e.run("a", 5)
				wantIs(e.t, err, guard.ErrPending)
				e.cut = nil
			}
			return guard.Refuse(receipt{Note: "sold out"})
		}
		_, err := e.runBy(g, "a", 5)
		if errors.Is(err, guard.ErrDuplicate) || !errors.Is(err, guard.ErrUnavailable) {
			e.t.Errorf("error is %v, want that nobody takes over without the lock", err)
		}
		got, err := e.run("a", 5)
		wantAnswer(e.t, got, err, guard.Answer[receipt]{Value: receipt{Note: "charge 1 of 5"}})
		e.paid()
	})
}

// TestCallSendsNothing: a refusal of Do has no transaction in which a message could be stored.
func TestCallSendsNothing(t *testing.T) {
	t.Parallel()
	withCalls(t, func(e *paying) {
		e.refusal = guard.Refuse("declined", note("declined"))
		_, err := e.run("a", 5)
		if wantIs(e.t, err, guard.ErrPending); !strings.Contains(err.Error(), "let Settle send them") {
			e.t.Errorf("error is %v", err)
		}
	})
}

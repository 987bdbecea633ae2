package promises_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/internal/testmetric"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/notify"
)

// noticing returns a guard that finds a lost lock soon, and a function that loses the lock on a key
// and waits until that is found.
func (e *paying) noticing(o guard.Observer) (g *guard.Guard, lose func(key string)) {
	e.t.Helper()
	locker, err := lock.New(e.Engine(), lock.Config{TTL: 3 * time.Second})
	wantNil(e.t, err)
	g, err = guard.New(e.db, locker, guard.Config{Service: "noticing", Publisher: &e.Events, Observer: o})
	wantNil(e.t, err)
	e.t.Cleanup(func() {
		if err := errors.Join(g.Close(bg), locker.Close(bg)); err != nil {
			e.t.Error(err)
		}
	})
	return g, func(key string) {
		e.t.Helper()
		before := testmetric.Sum(e.t, locker, "belay_lock_lost_total")
		e.Forget(key)
		testwait.Until(e.t, "the loss is found", func() bool { return testmetric.Sum(e.t, locker, "belay_lock_lost_total") > before })
	}
}

// TestLossInCallIsOneEvent: a lock that is lost while the provider works, or in the transaction behind
// it, is one event, which says that the request was settled.
func TestLossInCallIsOneEvent(t *testing.T) {
	t.Parallel()
	key := printed("a").Key()
	for name, during := range map[string]func(e *paying, c *guard.Call[int, string, receipt], lose func(key string)){
		"Do": func(e *paying, _ *guard.Call[int, string, receipt], lose func(key string)) {
			e.meantime = func(context.Context) { lose(key) }
		},
		"Settle": func(_ *paying, c *guard.Call[int, string, receipt], lose func(key string)) {
			settle, lost := c.Settle, false
			c.Settle = func(ctx context.Context, tx *gorm.DB, amount int, o guard.Outcome[string]) (receipt, error) {
				if !lost {
					lost = true
					lose(key)
				}
				return settle(ctx, tx, amount, o)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			withCalls(t, func(e *paying) {
				g, lose := e.noticing(nil)
				c := e.buy()
				during(e, &c, lose)
				got, err := c.Run(bg, g, printed("a", "5"), 5, guard.Also("sku:1", &Stock{ID: 1}))
				wantAnswer(e.t, got, err, guard.Answer[receipt]{Value: receipt{Note: "charge 1 of 5"}})
				if e.paid(); e.calls != 1 {
					e.t.Errorf("%d calls, want 1", e.calls)
				}
				e.wantEvent(notify.VerdictLost, notify.OutcomeCommitted, key)
			})
		})
	}
}

// panicking is an Observer that panics at the end of a transaction.
type panicking struct{ left int }

func (p *panicking) Start(ctx context.Context, step guard.Step, _ string) (context.Context, func(error)) {
	return ctx, func(error) {
		if step != guard.StepTransaction {
			return
		}
		if p.left--; p.left == 0 {
			panic(p)
		}
	}
}

func (*panicking) Trace(context.Context) notify.Trace { return notify.Trace{} }

// TestLossInCallThatPanics: the Observer panics behind the COMMIT that settles a request whose lock is lost.
// The event says what became of it.
func TestLossInCallThatPanics(t *testing.T) {
	t.Parallel()
	withCalls(t, func(e *paying) {
		g, _ := e.noticing(&panicking{left: 2})
		key, c := printed("a").Key(), e.buy()
		settle := c.Settle
		c.Settle = func(ctx context.Context, tx *gorm.DB, amount int, o guard.Outcome[string]) (receipt, error) {
			defer e.Forget(key) // which its release finds
			return settle(ctx, tx, amount, o)
		}
		func() {
			defer func() {
				if _, ok := recover().(*panicking); !ok {
					e.t.Error("the Observer has not panicked")
				}
			}()
			_, _ = c.Run(bg, g, printed("a", "5"), 5)
		}()
		e.paid()
		e.wantEvent(notify.VerdictLost, notify.OutcomeCommitted, key)
	})
}

// TestLossOfAPendingCallIsOneEvent: a lock is lost in a Settle that fails for a row of its own. One
// event says so, and that the request is not settled.
func TestLossOfAPendingCallIsOneEvent(t *testing.T) {
	t.Parallel()
	withCalls(t, func(e *paying) {
		g, lose := e.noticing(nil)
		e.create(&Order{No: "x"})
		key, lost := printed("a").Key(), false
		c := e.buy()
		c.Settle = func(ctx context.Context, tx *gorm.DB, _ int, _ guard.Outcome[string]) (receipt, error) {
			err := guard.Insert(&Order{No: "x"}).Run(ctx, tx)
			if !lost {
				lost = true
				lose(key)
			}
			return receipt{}, err
		}
		_, err := c.Run(bg, g, printed("a", "5"), 5, guard.Also("order:x", &Order{No: "x"}), guard.Also("sku:1", &Stock{ID: 1}))
		wantIs(e.t, err, guard.ErrPending)
		wantIs(e.t, err, guard.ErrExists)
		e.wantEvent(notify.VerdictLost, notify.OutcomeRolledBack, key)
		wantNil(e.t, e.db.Delete(&Order{}, "no = ?", "x").Error)
		e.settles(1)
	})
}

// TestOwnUnknownOfSettle: an error of Settle that looks like that of a COMMIT is not one. A repeat
// settles at once.
func TestOwnUnknownOfSettle(t *testing.T) {
	t.Parallel()
	withCalls(t, func(e *paying) {
		e.settleFails = fmt.Errorf("of another service: %w", guard.ErrUnknown)
		_, err := e.run("a", 5)
		wantIs(e.t, err, guard.ErrPending)
		e.wantNoEvent()
		e.settleFails = nil
		got, err := e.runBy(e.Peer(e.t, e.db), "a", 5)
		wantAnswer(e.t, got, err, guard.Answer[receipt]{Value: receipt{Note: "charge 1 of 5"}})
		e.paid()
	})
}

// TestOwnLossOfReserve: an error of Reserve that looks like a lost lock does not keep its refusal from
// being stored.
func TestOwnLossOfReserve(t *testing.T) {
	t.Parallel()
	withCalls(t, func(e *paying) {
		e.reserve = func(context.Context, *gorm.DB, int) error {
			return fmt.Errorf("%w: %w", guard.Refuse(receipt{Note: "sold out"}), guard.ErrLost)
		}
		for _, replayed := range []bool{false, true} {
			got, err := e.run("a", 5)
			wantAnswer(e.t, got, err, guard.Answer[receipt]{Value: receipt{Note: "sold out"}, Refused: true, Replayed: replayed})
		}
		e.wantNoEvent()
	})
}

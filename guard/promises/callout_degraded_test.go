package promises_test

import (
	"context"
	"testing"

	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/notify"
)

// TestCallLeavesThePlaces: DBOnlyLimit counts the transactions of a call, as long as they have a
// connection, and not the time for which the provider works.
func TestCallLeavesThePlaces(t *testing.T) {
	t.Parallel()
	withCalls(t, func(e *paying) {
		g, f := e.dbOnly(guard.Config{DBOnlyLimit: 1})
		e.meantime = func(context.Context) {
			if err := g.Apply(bg, "sku:2", guard.Update(&Stock{ID: 2}, take)); err != nil {
				e.t.Errorf("another operation while the provider works: %v", err)
			}
		}
		e.refuses = true // Settle writes the row of sku:1
		got, err := e.runBy(g, "a", 5)
		wantAnswer(e.t, got, err, guard.Answer[receipt]{Value: receipt{Note: "declined"}})
		if left := e.stock(1).Left; left != 9 || len(e.pending()) != 0 {
			e.t.Errorf("%d are left, pending %+v; want 9, and nothing", left, e.pending())
		}
		f.down[0].Store(false)
		testwait.Until(e.t, "the end of the outage is reported", func() bool { return len(e.Events.All()) == 2 })
		e.wantDegraded(1, notify.OutcomeCommitted, 3)
	})
}

// TestLockIsBackBehindTheCall: an outage ends while the provider works. The call is settled with the
// lock, and no other outage is reported.
func TestLockIsBackBehindTheCall(t *testing.T) {
	t.Parallel()
	withCalls(t, func(e *paying) {
		g, f := e.dbOnly(guard.Config{})
		e.meantime = func(context.Context) {
			f.down[0].Store(false)
			e.awaitEnd(g)
		}
		asked := f.asked.Load()
		got, err := e.runBy(g, "a", 5)
		wantAnswer(e.t, got, err, guard.Answer[receipt]{Value: receipt{Note: "charge 1 of 5"}})
		e.paid()
		if f.asked.Load() < asked+2 {
			e.t.Error("it was settled without the lock")
		}
		testwait.Until(e.t, "the end of the outage is reported", func() bool { return len(e.Events.All()) >= 2 })
		e.wantDegraded(1, notify.OutcomeCommitted, 1)
	})
}

// TestLockIsBackBetweenTransactions: an outage ends while Reserve runs, which refuses. The refusal is stored
// with the lock, and no other outage is reported.
func TestLockIsBackBetweenTransactions(t *testing.T) {
	t.Parallel()
	withCalls(t, func(e *paying) {
		g, f := e.dbOnly(guard.Config{})
		e.reserve = func(context.Context, *gorm.DB, int) error {
			f.down[0].Store(false)
			e.awaitEnd(g)
			return guard.Refuse(receipt{Note: "sold out"})
		}
		got, err := e.buy().Run(bg, g, printed("a", "5"), 5)
		wantAnswer(e.t, got, err, guard.Answer[receipt]{Value: receipt{Note: "sold out"}, Refused: true})
		testwait.Until(e.t, "the end of the outage is reported", func() bool { return len(e.Events.All()) >= 2 })
		e.wantDegraded(1, notify.OutcomeRolledBack, 1)
	})
}

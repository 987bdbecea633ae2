package promises_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/memlock"
	"github.com/belaygo/belay/notify"
	"github.com/belaygo/belay/once"
)

func payingOver(t *testing.T, dsn string) (*paying, *testdb.Link) {
	t.Helper()
	e, k := linkedTo(t, dsn)
	wantNil(t, errors.Join(once.Migrate(bg, e.db), once.MigrateCalls(bg, e.db)))
	e.create(&Stock{ID: 1, Left: 9})
	return &paying{env: e}, k
}

// through returns a Guard behind the link, with locks of its own.
func (e *paying) through(endTimeout time.Duration) *guard.Guard {
	e.t.Helper()
	return e.over(e.open(), endTimeout)
}

// over returns a Guard of db, with locks of its own.
func (e *paying) over(db *gorm.DB, endTimeout time.Duration) *guard.Guard {
	e.t.Helper()
	locker, err := lock.New(memlock.New(), lock.Config{})
	wantNil(e.t, err)
	g, err := guard.New(db, locker, guard.Config{Service: "paying", Publisher: &e.Events, EndTimeout: endTimeout})
	wantNil(e.t, err)
	e.t.Cleanup(func() { wantNil(e.t, errors.Join(g.Close(bg), locker.Close(bg))) })
	return g
}

// TestCommitOfReservationWithoutAnswer: what became of the COMMIT is found out before the call. If it
// took no effect, nobody calls.
func TestCommitOfReservationWithoutAnswer(t *testing.T) {
	t.Parallel()
	for name, dsn := range map[string]func(testing.TB) string{"mysql": teststack.MySQL, "postgres": teststack.Postgres} {
		t.Run(name, func(t *testing.T) {
			e, k := payingOver(t, dsn(t))
			k.Before.Store(true)
			_, err := e.run("a", 5)
			k.Before.Store(false)
			if err == nil || errors.Is(err, guard.ErrUnknown) || e.calls != 0 || len(e.pending()) != 0 {
				t.Errorf("%d calls, pending %+v: %v", e.calls, e.pending(), err)
			}
			k.After.Store(true)
			e.meantime = func(context.Context) { k.After.Store(false) }
			got, err := e.run("a", 5)
			wantAnswer(t, got, err, guard.Answer[receipt]{Value: receipt{Note: "charge 1 of 5"}})
			e.paid()
		})
	}
}

// TestCommitOfSettlementWithoutAnswer: if it took effect, that is the answer. If not, the result is
// stored, and settled without another call.
func TestCommitOfSettlementWithoutAnswer(t *testing.T) {
	t.Parallel()
	for name, dsn := range map[string]func(testing.TB) string{"mysql": teststack.MySQL, "postgres": teststack.Postgres} {
		t.Run(name, func(t *testing.T) {
			e, k := payingOver(t, dsn(t))
			e.meantime = func(context.Context) { k.Before.Store(true) }
			_, err := e.run("a", 5)
			wantIs(t, err, guard.ErrPending)
			k.Before.Store(false)
			got, err := e.run("a", 5)
			wantAnswer(t, got, err, guard.Answer[receipt]{Value: receipt{Note: "charge 1 of 5"}})
			if e.paid(); e.calls != 1 {
				t.Errorf("%d calls, want 1", e.calls)
			}
			e.meantime = func(context.Context) { k.After.Store(true) }
			got, err = e.run("b", 6)
			k.After.Store(false)
			wantAnswer(t, got, err, guard.Answer[receipt]{Value: receipt{Note: "charge 2 of 6"}})
		})
	}
}

// TestTakeoverNeedsTheLock: without it, under DBOnly, a first call runs, since the row excludes others,
// and nobody takes one over.
func TestTakeoverNeedsTheLock(t *testing.T) {
	t.Parallel()
	withCalls(t, func(e *paying) {
		g, f := e.dbOnly(guard.Config{})
		buy := func(id string) (guard.Answer[receipt], error) { return e.runBy(g, id, 5) }
		e.fails = errors.New("dead")
		_, err := buy("a")
		wantIs(e.t, err, guard.ErrPending)
		e.fails = nil
		_, err = buy("a")
		wantIs(e.t, err, guard.ErrUnavailable)
		if e.calls != 1 {
			e.t.Errorf("%d calls, want 1", e.calls)
		}
		f.down[0].Store(false)
		got, err := e.run("a", 5)
		wantAnswer(e.t, got, err, guard.Answer[receipt]{Value: receipt{Note: "charge 1 of 5"}})
		e.paid()
	})
}

// beforeDo is an Observer that calls f once before the next transaction of a Call.
type beforeDo struct{ f func() }

func (o *beforeDo) Start(ctx context.Context, step guard.Step, _ string) (context.Context, func(error)) {
	if f := o.f; f != nil && step == guard.StepDo {
		o.f = nil
		f()
	}
	return ctx, func(error) {}
}

func (*beforeDo) Trace(context.Context) notify.Trace { return notify.Trace{} }

// TestClaimIsSeenBehindTheRow: schedule i of internal/model/call. A request is settled by a process
// that shares no lock, between the look at the tables and the INSERT of the row: the reservation is
// not made, and the answer is that of the other process.
func TestClaimIsSeenBehindTheRow(t *testing.T) {
	t.Parallel()
	withCalls(t, func(e *paying) {
		var o beforeDo
		g, _ := e.dbOnly(guard.Config{Observer: &o})
		o.f = func() {
			_, err := e.run("a", 5)
			wantNil(e.t, err)
		}
		got, err := e.runBy(g, "a", 5)
		wantAnswer(e.t, got, err, guard.Answer[receipt]{Value: receipt{Note: "charge 1 of 5"}, Replayed: true})
		if e.paid(); e.calls != 1 {
			e.t.Errorf("%d calls, want 1", e.calls)
		}
	})
}

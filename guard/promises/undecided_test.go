package promises_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/guard/internal/inside"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/memlock"
	"github.com/belaygo/belay/notify"
)

// publish is a Publisher.
type publish func(ctx context.Context, ev notify.Event) error

func (p publish) Publish(ctx context.Context, ev notify.Event) error { return p(ctx, ev) }

// undecided makes requests that are undecided.
func (e *paying) undecided(ids ...string) {
	e.t.Helper()
	e.cut = errors.New("no answer")
	for _, id := range ids {
		_, err := e.run(id, 5)
		wantIs(e.t, err, guard.ErrPending)
	}
	e.passes("until_ms")
}

// looking returns a Guard that looks for undecided requests, and a function that closes it.
func (e *paying) looking(cfg guard.Config) (g *guard.Guard, closes func()) {
	e.t.Helper()
	locker, err := lock.New(memlock.New(), lock.Config{})
	wantNil(e.t, err)
	cfg.Service = "looks"
	g, err = guard.New(e.db, locker, cfg)
	wantNil(e.t, err)
	return g, func() {
		e.t.Helper()
		wantNil(e.t, errors.Join(g.Close(bg), locker.Close(bg)))
	}
}

// TestUndecidedIsReportedUntilItIsPublished: an event that could not be handed over is, at the next repeat.
func TestUndecidedIsReportedUntilItIsPublished(t *testing.T) {
	t.Parallel()
	withCalls(t, func(e *paying) {
		e.undecided("a")
		var tries atomic.Int32
		g, closes := e.looking(guard.Config{Publisher: publish(func(ctx context.Context, ev notify.Event) error {
			switch tries.Add(1) {
			case 1:
				return errors.New("the outbox is away")
			case 2:
				panic("a bug")
			}
			return e.Events.Publish(ctx, ev)
		})})
		defer closes()
		for range 4 {
			func() {
				defer func() { _ = recover() }() // of the Publisher
				_, err := e.runBy(g, "a", 5)
				wantIs(e.t, err, guard.ErrPending)
			}()
		}
		e.wantEvent(notify.VerdictUndecided, notify.OutcomeUnknown, printed("a").Key())
	})
}

// TestCloseEndsTheReports: a Publisher that does not answer holds Close up for one event at most.
func TestCloseEndsTheReports(t *testing.T) {
	t.Parallel()
	withCalls(t, func(e *paying) {
		e.undecided("a", "b", "c")
		var tries atomic.Int32
		_, closes := e.looking(guard.Config{Calls: true, EndTimeout: time.Second, Publisher: publish(func(ctx context.Context, _ notify.Event) error {
			tries.Add(1)
			<-ctx.Done()
			return ctx.Err()
		})})
		testwait.Until(e.t, "an event is published", func() bool { return tries.Load() > 0 })
		closes()
		if n := tries.Load(); n != 1 {
			e.t.Errorf("%d events are published while the Guard is closed, want 1", n)
		}
	})
}

// TestAllUndecidedAreReported: of many that became undecided at once, each is, by one look after the other.
func TestAllUndecidedAreReported(t *testing.T) {
	t.Parallel()
	withCalls(t, func(e *paying) {
		const many = 1001
		rows := make([]map[string]any, many)
		for n := range rows {
			rows[n] = map[string]any{"request": fmt.Appendf(nil, "%032d", n), "attempt": 1, "print": []byte("p"), "operation": "take", "since_ms": 1, "until_ms": n, "tries": 1}
		}
		wantNil(e.t, e.db.Table("belay_pending").CreateInBatches(rows, 500).Error)
		g, closes := e.looking(guard.Config{Publisher: &e.Events})
		defer closes()
		for range 3 {
			wantNil(e.t, inside.Of(g).LookForUndecided())
		}
		if n := len(e.Events.All()); n != many {
			e.t.Errorf("%d events, want %d", n, many)
		}
	})
}

// TestBacklogOfCalls: with Calls a scrape counts what is pending, and without the table it says nothing of it.
func TestBacklogOfCalls(t *testing.T) {
	t.Parallel()
	withCalls(t, func(e *paying) {
		e.undecided("a", "b")
		_, err := e.run("c", 5)
		wantIs(e.t, err, guard.ErrPending)
		g, closes := e.looking(guard.Config{Calls: true})
		defer closes()
		var got map[string]float64
		testwait.Until(e.t, "the database answers a scrape in time", func() bool {
			got = metricsOf(e.t, g)
			_, ok := got["pending_calls"]
			return ok
		})
		if age, ok := got["oldest_pending_call_seconds"]; got["pending_calls"] != 3 || got["undecided_calls"] != 2 || !ok || age > 3600 {
			e.t.Errorf("the metrics are %v, want 3 pending calls, 2 of them undecided", got)
		}
		wantNil(e.t, e.db.Migrator().DropTable("belay_pending"))
		if n, ok := metricsOf(e.t, g)["pending_calls"]; ok {
			e.t.Errorf("without the table %v calls are pending", n)
		}
		without, closes := e.looking(guard.Config{})
		defer closes()
		if _, ok := metricsOf(e.t, without)["pending_calls"]; ok {
			e.t.Error("a Guard without Calls counts them")
		}
	})
}

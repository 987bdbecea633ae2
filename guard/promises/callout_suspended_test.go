package promises_test

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/guard/internal/inside"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/notify"
)

// TestSuspendedHost: the host is suspended between the begin of a lease and the call, or somebody sets
// the wall clock. The monotonic clock stands meanwhile. Behind the lease, or behind Until, nobody calls:
// the request stays pending.
func TestSuspendedHost(t *testing.T) {
	t.Parallel()
	for name, dsn := range map[string]func(testing.TB) string{"mysql": teststack.MySQL, "postgres": teststack.Postgres} {
		const hour = time.Hour
		for _, tt := range []struct {
			name             string
			end, until, step time.Duration // end is a quarter of what the lease has beyond Timeout
			calls            int
		}{
			{"behind the lease", 5 * time.Minute, 24 * hour, hour, 0},
			{"behind Until", hour, hour, 2 * hour, 0},
			{"the clock is set back", hour, hour, -24 * hour, 1},
		} {
			t.Run(name+", "+tt.name, func(t *testing.T) {
				t.Parallel()
				e, k := payingOver(t, dsn(t))
				g, c := e.through(tt.end), e.buy()
				c.Until = tt.until
				run := func(id string) error {
					_, err := c.Run(bg, g, printed(id, "5"), 5, guard.Also("sku:1", &Stock{ID: 1}))
					return err
				}
				// suspended runs the request, and suspends the host before a statement reaches the database.
				suspended := func(id, statement string) {
					t.Helper()
					before, suspend := e.calls, sync.OnceFunc(func() { inside.Of(g).StepClock(tt.step) })
					stop := k.Interrupt(func(packet []byte) {
						if bytes.Contains(packet, []byte(statement)) {
							suspend()
						}
					})
					err := run(id)
					stop()
					suspend() // at the latest
					inside.Of(g).StepClock(-tt.step)
					if n := e.calls - before; n != tt.calls || errors.Is(err, guard.ErrPending) != (n == 0) {
						t.Errorf("suspended at %q: %d calls, want %d: %v", statement, n, tt.calls, err)
					}
				}
				suspended("a", "UPDATE belay_pending SET since_ms")
				e.fails = errors.New("the provider is dead")
				wantIs(t, run("b"), guard.ErrPending)
				e.fails = nil
				suspended("b", "UPDATE belay_pending SET attempt")
				for _, id := range []string{"a", "b"} {
					wantNil(t, run(id))
				}
				if e.charges != 2 || len(e.pending()) != 0 {
					t.Errorf("%d charges, pending %+v", e.charges, e.pending())
				}
			})
		}
	}
}

// TestSuspendedInCall: the host is suspended while Do runs, for longer than the lease and Until. The context
// of Do has ended when it goes on, also for a client that had begun to wait: nothing is sent again to a
// provider that may have forgotten the id. Another process may call.
func TestSuspendedInCall(t *testing.T) {
	t.Parallel()
	withCalls(t, func(e *paying) {
		e.cut = errors.New("no answer")
		e.meantime = func(ctx context.Context) {
			waits, stop := context.WithCancel(ctx)
			defer stop()
			e.inside().StepClock(2 * time.Hour)
			defer e.inside().StepClock(-2 * time.Hour)
			wantIs(e.t, ctx.Err(), context.DeadlineExceeded)
			testwait.Until(e.t, "whoever waits has noticed", func() bool { return waits.Err() != nil })
		}
		_, err := e.run("a", 5)
		wantIs(e.t, err, guard.ErrPending)
		if open := e.pending(); len(open) != 1 || !open[0].Calling {
			e.t.Errorf("pending are %+v, want one whose lease lasts", open)
		}
		e.cut, e.meantime = nil, nil
		e.passes("lease_ms")
		e.settles(2)
	})
}

// A pausing is a context and an Observer: the host is suspended when a deadline is made of the context
// behind a transaction.
type pausing struct {
	context.Context

	suspend func()
	armed   bool
}

func (p *pausing) Deadline() (time.Time, bool) {
	if p.armed {
		p.armed = false
		p.suspend()
	}
	return time.Time{}, false
}

func (p *pausing) Start(ctx context.Context, step guard.Step, _ string) (context.Context, func(error)) {
	return ctx, func(error) { p.armed = step == guard.StepDo }
}

func (*pausing) Trace(context.Context) notify.Trace { return notify.Trace{} }

// TestSuspendedWithTheDeadline: the host is suspended when the call gets its deadline. That is set before
// the look at the clock, so it does not begin with the time after that.
func TestSuspendedWithTheDeadline(t *testing.T) {
	t.Parallel()
	withCalls(t, func(e *paying) {
		p := &pausing{Context: bg}
		g, _ := e.noticing(p)
		p.suspend = func() { inside.Of(g).StepClock(2 * time.Hour) }
		_, err := e.buy().Run(p, g, printed("a", "5"), 5)
		if wantIs(e.t, err, guard.ErrPending); e.calls != 0 {
			e.t.Errorf("%d calls, want none", e.calls)
		}
	})
}

package promises_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/guard/guardtest"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/memlock"
	"github.com/belaygo/belay/notify"
	"github.com/belaygo/belay/once"
)

// A provider acts once for an id, for as long as it remembers that.
type provider struct {
	mu      sync.Mutex
	known   map[string]string // answers by id
	charges int
	calls   int
	ids     map[string]bool

	refuses  bool
	refusal  error                     // in place of an answer
	fails    error                     // before it has acted
	cut      error                     // when it has acted: the answer is lost
	meantime func(ctx context.Context) // while it works
}

func (p *provider) pay(ctx context.Context, id string, amount int) (string, error) {
	p.mu.Lock()
	p.calls++
	if p.ids == nil {
		p.ids, p.known = make(map[string]bool), make(map[string]string)
	}
	p.ids[id] = true
	meantime := p.meantime
	p.mu.Unlock()
	if meantime != nil {
		meantime(ctx)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fails != nil {
		return "", p.fails
	}
	if p.refusal != nil {
		return "", p.refusal
	}
	if p.refuses {
		return "", guard.Refuse("declined")
	}
	if p.known[id] == "" {
		p.charges++
		p.known[id] = fmt.Sprintf("charge %d of %d", p.charges, amount)
	}
	if p.cut != nil {
		return "", p.cut
	}
	return p.known[id], nil
}

// forget is what a provider does with an id after a while.
func (p *provider) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.known)
}

// paying is a service that sells one thing for a payment.
type paying struct {
	*env
	provider

	settleFails error
	reserve     func(ctx context.Context, tx *gorm.DB, amount int) error
}

// buy takes one of stock 1 for a payment, and gives it back if that is refused.
func (e *paying) buy() guard.Call[int, string, receipt] {
	return guard.Call[int, string, receipt]{
		Name: "take",
		Reserve: func(ctx context.Context, tx *gorm.DB, amount int) error {
			if e.reserve != nil {
				return e.reserve(ctx, tx, amount)
			}
			return takeOne(1)(ctx, tx)
		},
		Do: e.pay,
		Settle: func(ctx context.Context, tx *gorm.DB, amount int, o guard.Outcome[string]) (receipt, error) {
			if e.settleFails != nil {
				return receipt{}, e.settleFails
			}
			if o.Refused {
				err := guard.Update(&Stock{ID: 1}, func(s *Stock) error { s.Left++; return nil }).Run(ctx, tx)
				return receipt{Note: o.Value}, err
			}
			return receipt{Note: o.Value}, guard.Insert(&Order{No: o.Value, Amount: amount}).Run(ctx, tx)
		},
		Timeout: time.Minute,
		Until:   time.Hour,
	}
}

func (e *paying) run(id string, amount int) (guard.Answer[receipt], error) {
	return e.runBy(e.Guard.Guard, id, amount)
}

func (e *paying) runBy(g *guard.Guard, id string, amount int) (guard.Answer[receipt], error) {
	return e.buy().Run(bg, g, printed(id, fmt.Sprint(amount)), amount, guard.Also("sku:1", &Stock{ID: 1}))
}

// paid checks that the request was settled: one charge for one id, and one of the stock taken.
func (e *paying) paid() {
	e.t.Helper()
	if e.charges != 1 || len(e.ids) != 1 {
		e.t.Errorf("%d charges by %d ids, want one each", e.charges, len(e.ids))
	}
	if left := e.stock(1).Left; left != 8 {
		e.t.Errorf("%d are left, want 8", left)
	}
	if n := e.count(&Order{}); n != 1 {
		e.t.Errorf("there are %d orders, want 1", n)
	}
	if open := e.pending(); len(open) != 0 {
		e.t.Errorf("pending are %+v, want none", open)
	}
}

// settles runs the request a once more, which settles it: the provider has been called so many times.
func (e *paying) settles(calls int) {
	e.t.Helper()
	got, err := e.run("a", 5)
	wantAnswer(e.t, got, err, guard.Answer[receipt]{Value: receipt{Note: "charge 1 of 5"}})
	if e.paid(); e.calls != calls {
		e.t.Errorf("%d calls, want %d", e.calls, calls)
	}
}

func (e *paying) pending() []once.Pending {
	e.t.Helper()
	open, err := once.Open(bg, e.db, 10)
	wantNil(e.t, err)
	return open
}

// passes makes the time of what is pending pass: the lease, or also Until.
func (e *paying) passes(columns ...string) {
	e.t.Helper()
	for _, c := range columns {
		wantNil(e.t, e.db.Exec("UPDATE belay_pending SET "+c+" = 1").Error)
	}
}

func withCalls(t *testing.T, f func(e *paying)) {
	t.Helper()
	withOnce(t, func(e *env) {
		wantNil(t, once.MigrateCalls(bg, e.db))
		f(&paying{env: e})
	})
}

// TestCallIsMadeOnce: every repeat gets the first answer, and nobody calls again.
func TestCallIsMadeOnce(t *testing.T) {
	t.Parallel()
	withCalls(t, func(e *paying) {
		got, err := e.run("a", 5)
		wantAnswer(e.t, got, err, guard.Answer[receipt]{Value: receipt{Note: "charge 1 of 5"}})
		for _, g := range []*guard.Guard{e.Guard.Guard, e.Peer(e.t, e.db)} {
			got, err = e.runBy(g, "a", 5)
			wantAnswer(e.t, got, err, guard.Answer[receipt]{Value: receipt{Note: "charge 1 of 5"}, Replayed: true})
		}
		if e.paid(); e.calls != 1 {
			e.t.Errorf("%d calls, want 1", e.calls)
		}
		_, err = e.run("a", 6)
		wantIs(e.t, err, guard.ErrMismatch)
		e.wantNoEvent()
	})
}

// TestCallIsRefused: by Reserve, without a call, or by the provider, whose reservation is given back.
func TestCallIsRefused(t *testing.T) {
	t.Parallel()
	withCalls(t, func(e *paying) {
		e.reserve = func(ctx context.Context, tx *gorm.DB, _ int) error {
			wantNil(e.t, takeOne(1)(ctx, tx))
			return guard.Refuse(receipt{Note: "sold out"})
		}
		for _, replayed := range []bool{false, true} {
			got, err := e.run("a", 5)
			wantAnswer(e.t, got, err, guard.Answer[receipt]{Value: receipt{Note: "sold out"}, Refused: true, Replayed: replayed})
		}
		e.reserve, e.refuses = nil, true
		for _, replayed := range []bool{false, true} {
			got, err := e.run("b", 5)
			wantAnswer(e.t, got, err, guard.Answer[receipt]{Value: receipt{Note: "declined"}, Replayed: replayed})
		}
		if left := e.stock(1).Left; e.calls != 1 || left != 9 || len(e.pending()) != 0 {
			e.t.Errorf("%d calls, %d left, pending %+v; want 1, 9 and nothing", e.calls, left, e.pending())
		}
	})
}

// TestCallIsRepeated: whatever the provider does, a repeat calls with the same id, and there is one charge.
func TestCallIsRepeated(t *testing.T) {
	t.Parallel()
	failure := errors.New("the provider is dead")
	for name, set := range map[string]func(e *paying, err error){
		"dead":        func(e *paying, err error) { e.fails = err },
		"answer lost": func(e *paying, err error) { e.cut = err },
	} {
		t.Run(name, func(t *testing.T) {
			withCalls(t, func(e *paying) {
				set(e, failure)
				for n := 1; n < 3; n++ {
					_, err := e.run("a", 5)
					wantIs(e.t, err, guard.ErrPending)
					wantIs(e.t, err, failure)
					open := e.pending()
					if len(open) != 1 || open[0].Tries != n || open[0].Undecided || open[0].Answered || open[0].Calling || open[0].Key != printed("a").Key() {
						e.t.Errorf("pending are %+v", open)
					}
				}
				if done, err := e.Served(bg, printed("a", "5")); done || err != nil {
					e.t.Errorf("the request is served: %v, %v", done, err)
				}
				_, err := e.run("a", 6)
				wantIs(e.t, err, guard.ErrMismatch)
				set(e, nil)
				got, err := e.runBy(e.Peer(e.t, e.db), "a", 5)
				wantAnswer(e.t, got, err, guard.Answer[receipt]{Value: receipt{Note: "charge 1 of 5"}})
				e.paid()
				e.wantNoEvent()
			})
		})
	}
}

// TestResultIsStored: what the provider has answered is settled later, and it is not called again.
func TestResultIsStored(t *testing.T) {
	t.Parallel()
	withCalls(t, func(e *paying) {
		e.settleFails = errors.New("a bug")
		for range 2 {
			_, err := e.run("a", 5)
			wantIs(e.t, err, guard.ErrPending)
			wantIs(e.t, err, e.settleFails)
		}
		if open := e.pending(); len(open) != 1 || !open[0].Answered {
			e.t.Errorf("pending are %+v, want one with an answer", open)
		}
		e.forget()
		e.passes("lease_ms", "until_ms")
		e.settleFails = guard.Refuse(receipt{})
		if _, err := e.run("a", 5); !errors.Is(err, guard.ErrPending) || !strings.Contains(err.Error(), "Settle cannot refuse") {
			e.t.Errorf("Settle refuses: %v", err)
		}
		e.settleFails = nil
		e.settles(1)
	})
}

// TestLeaseExcludes: the lock of the request is lost during the call. Nobody else calls before the
// lease has ended, and the call goes on and is settled.
func TestLeaseExcludes(t *testing.T) {
	t.Parallel()
	withCalls(t, func(e *paying) {
		key, peer := printed("a").Key(), e.Peer(e.t, e.db)
		e.meantime = func(ctx context.Context) {
			e.meantime = nil
			if err := e.Do(bg, "sku:1", takeOne(2)); err != nil {
				e.t.Errorf("the keys of Also are held during the call: %v", err)
			}
			_, err := e.runBy(peer, "a", 5)
			wantIs(e.t, err, guard.ErrBusy)
			e.Forget(key)
			_, err = e.runBy(peer, "a", 5)
			wantIs(e.t, err, guard.ErrBusy)
			wantNil(e.t, ctx.Err())
		}
		e.settles(1)
	})
}

// TestOvertakenCallSettlesNothing: a process is paused in its call for longer than its lease, and
// another one takes over. The first one changes nothing any more.
func TestOvertakenCallSettlesNothing(t *testing.T) {
	t.Parallel()
	withCalls(t, func(e *paying) {
		peer := e.Peer(e.t, e.db)
		e.meantime = func(context.Context) {
			e.meantime = nil
			e.Forget(printed("a").Key())
			e.passes("lease_ms")
			e.cut = errors.New("no answer")
			_, err := e.runBy(peer, "a", 5)
			wantIs(e.t, err, guard.ErrPending)
			e.cut = nil
		}
		_, err := e.run("a", 5)
		wantIs(e.t, err, guard.ErrPending)
		if n := e.count(&Order{}); n != 0 || len(e.pending()) != 1 {
			e.t.Errorf("%d orders and pending %+v, want none and one", n, e.pending())
		}
		got, err := e.run("a", 5)
		wantAnswer(e.t, got, err, guard.Answer[receipt]{Value: receipt{Note: "charge 1 of 5"}})
		e.paid()
	})
}

// TestUndecided: behind Until nobody calls, as the provider may have forgotten the id.
func TestUndecided(t *testing.T) {
	t.Parallel()
	withCalls(t, func(e *paying) {
		e.cut = errors.New("no answer")
		_, err := e.run("a", 5)
		wantIs(e.t, err, guard.ErrPending)
		e.passes("until_ms")
		e.cut = nil
		e.forget()
		for range 2 {
			_, err = e.run("a", 5)
			wantIs(e.t, err, guard.ErrPending)
			if p, ok := errors.AsType[*guard.PendingError](err); !ok || !p.Undecided || p.Since.IsZero() || p.Tries != 1 {
				e.t.Errorf("the error is %+v, want that it is undecided", p)
			}
		}
		ev := e.wantEvent(notify.VerdictUndecided, notify.OutcomeUnknown, printed("a").Key())
		if c := ev.Call; c == nil || !e.ids[c.ID] || c.Operation != "take" || c.Tries != 1 || c.Since.IsZero() {
			e.t.Errorf("the event has the call %+v", c)
		}
		_, err = e.runBy(e.Peer(e.t, e.db), "a", 5) // another process
		wantIs(e.t, err, guard.ErrPending)
		if all := e.Events.All(); len(all) != 2 || all[1].ID != ev.ID {
			e.t.Errorf("events are %+v, want one, of the same id from each process", all)
		}
		if open := e.pending(); e.calls != 1 || len(open) != 1 || !open[0].Undecided {
			e.t.Errorf("%d calls, pending are %+v; want 1 and one undecided", e.calls, open)
		}
	})
}

// TestUndecidedIsFound: a request that nobody repeats is reported, too.
func TestUndecidedIsFound(t *testing.T) {
	t.Parallel()
	withCalls(t, func(e *paying) {
		e.cut = errors.New("no answer")
		for _, id := range []string{"a", "b", "c"} {
			_, err := e.run(id, 5)
			wantIs(e.t, err, guard.ErrPending)
		}
		var requests [][]byte
		wantNil(e.t, e.db.Table("belay_pending").Pluck("request", &requests).Error)
		wantNil(e.t, e.db.Exec("UPDATE belay_pending SET answered = 1 WHERE request = ?", requests[0]).Error)
		wantNil(e.t, e.db.Exec("UPDATE belay_pending SET until_ms = 1 WHERE request IN ?", requests[:2]).Error)
		locker, err := lock.New(memlock.New(), lock.Config{})
		wantNil(e.t, err)
		g, err := guard.New(e.db, locker, guard.Config{Service: "looks", Publisher: &e.Events, Calls: true})
		wantNil(e.t, err)
		testwait.Until(e.t, "an undecided request is reported", func() bool { return len(e.Events.All()) > 0 })
		wantNil(e.t, errors.Join(g.Close(bg), locker.Close(bg)))
		key := ""
		for _, p := range e.pending() {
			if p.Undecided {
				key = p.Key
			}
		}
		if ev := e.wantEvent(notify.VerdictUndecided, notify.OutcomeUnknown, key); ev.Call == nil || !e.ids[ev.Call.ID] || ev.Call.Tries != 1 {
			e.t.Errorf("the event is %+v", ev)
		}
	})
}

// TestCallPanics stands for a process that dies: the lease lasts, and another process goes on.
func TestCallPanics(t *testing.T) {
	t.Parallel()
	withCalls(t, func(e *paying) {
		e.meantime = func(context.Context) { panic("dies") }
		func() {
			defer func() { wantPanic(e.t, recover()) }()
			_, _ = e.run("a", 5)
		}()
		e.meantime = nil
		_, err := e.run("a", 5)
		wantIs(e.t, err, guard.ErrBusy)
		e.passes("lease_ms")
		got, err := e.run("a", 5)
		wantAnswer(e.t, got, err, guard.Answer[receipt]{Value: receipt{Note: "charge 1 of 5"}})
		e.paid()
	})
}

func wantPanic(t *testing.T, p any) {
	t.Helper()
	if p != "dies" {
		t.Errorf("recovered %v", p)
	}
}

// TestTimeoutIsNoRefusal: what a call returns behind its end counts for nothing, and its lease lasts.
func TestTimeoutIsNoRefusal(t *testing.T) {
	t.Parallel()
	withCalls(t, func(e *paying) {
		e.refuses = true
		e.meantime = func(ctx context.Context) { <-ctx.Done() }
		c := e.buy()
		c.Timeout = time.Millisecond
		_, err := c.Run(bg, e.Guard.Guard, printed("a", "5"), 5, guard.Also("sku:1", &Stock{ID: 1}))
		wantIs(e.t, err, guard.ErrPending)
		wantIs(e.t, err, context.DeadlineExceeded)
		if open := e.pending(); len(open) != 1 || open[0].Answered || !open[0].Calling {
			e.t.Errorf("pending are %+v, want one whose lease lasts", open)
		}
		_, err = e.run("a", 5)
		wantIs(e.t, err, guard.ErrBusy)
		e.refuses, e.meantime = false, nil
		e.passes("lease_ms")
		got, err := e.run("a", 5)
		wantAnswer(e.t, got, err, guard.Answer[receipt]{Value: receipt{Note: "charge 1 of 5"}})
		e.paid()
	})
}

// TestCallOutlivesClose: Close waits for a call, which is settled.
func TestCallOutlivesClose(t *testing.T) {
	t.Parallel()
	withCalls(t, func(e *paying) {
		closed := make(chan error, 1)
		e.meantime = func(context.Context) {
			go func() { closed <- e.Close(bg) }()
			for e.Do(bg, "any", takeOne(2)) == nil { // until Close has begun
			}
		}
		got, err := e.run("a", 5)
		wantAnswer(e.t, got, err, guard.Answer[receipt]{Value: receipt{Note: "charge 1 of 5"}})
		wantNil(e.t, <-closed)
		e.paid()
	})
}

// TestInvalidCalls: nothing is reserved for them.
func TestInvalidCalls(t *testing.T) {
	t.Parallel()
	withCalls(t, func(e *paying) {
		run := func(change func(c *guard.Call[int, string, receipt], r *once.Request), opts ...guard.Option) error {
			c, r := e.buy(), printed("a", "5")
			change(&c, &r)
			_, err := c.Run(bg, e.Guard.Guard, r, 5, opts...)
			return err
		}
		type change = func(c *guard.Call[int, string, receipt], r *once.Request)
		for name, f := range map[string]change{
			"Do":      func(c *guard.Call[int, string, receipt], _ *once.Request) { c.Do = nil },
			"Settle":  func(c *guard.Call[int, string, receipt], _ *once.Request) { c.Settle = nil },
			"Until":   func(c *guard.Call[int, string, receipt], _ *once.Request) { c.Until = 0 },
			"Timeout": func(c *guard.Call[int, string, receipt], _ *once.Request) { c.Timeout = 11 * time.Minute },
			"Name":    func(c *guard.Call[int, string, receipt], _ *once.Request) { c.Name = "other" },
			"Print":   func(_ *guard.Call[int, string, receipt], r *once.Request) { r.Print = once.Print{} },
			"Scope":   func(_ *guard.Call[int, string, receipt], r *once.Request) { r.Scope = nil },
		} {
			if err := run(f); err == nil || !strings.Contains(err.Error(), name) {
				e.t.Errorf("%s: the error is %v", name, err)
			}
		}
		for _, opt := range []guard.Option{guard.Combine(), guard.Protects(&Stock{ID: 1}), guard.For(request("b")), guard.Remember(time.Second)} {
			if err := run(func(*guard.Call[int, string, receipt], *once.Request) {}, opt); err == nil || errors.Is(err, guard.ErrPending) {
				e.t.Errorf("an option that is not for it: %v", err)
			}
		}
		err := e.Do(bg, "any", func(ctx context.Context, _ *gorm.DB) error {
			_, err := e.buy().Run(ctx, e.Guard.Guard, printed("a", "5"), 5)
			return err
		})
		wantIs(e.t, err, guard.ErrNested)
		if e.calls != 0 || len(e.pending()) != 0 || e.stock(1).Left != 9 {
			e.t.Errorf("%d calls, pending %+v, stock %+v", e.calls, e.pending(), e.stock(1))
		}
	})
}

// TestCallInsideCall: that of the same request is busy, that of another one is its own.
func TestCallInsideCall(t *testing.T) {
	t.Parallel()
	withCalls(t, func(e *paying) {
		e.meantime = func(ctx context.Context) {
			e.meantime = nil
			_, err := e.buy().Run(ctx, e.Guard.Guard, printed("a", "5"), 5)
			wantIs(e.t, err, guard.ErrBusy)
			got, err := e.buy().Run(ctx, e.Guard.Guard, printed("b", "5"), 5, guard.Also("sku:1", &Stock{ID: 1}))
			wantAnswer(e.t, got, err, guard.Answer[receipt]{Value: receipt{Note: "charge 1 of 5"}})
		}
		got, err := e.run("a", 5)
		wantAnswer(e.t, got, err, guard.Answer[receipt]{Value: receipt{Note: "charge 2 of 5"}})
	})
}

// TestReserveFails: nothing is left, and a repeat begins anew.
func TestReserveFails(t *testing.T) {
	t.Parallel()
	withCalls(t, func(e *paying) {
		failure := errors.New("no")
		e.reserve = func(ctx context.Context, tx *gorm.DB, _ int) error {
			wantNil(e.t, takeOne(1)(ctx, tx))
			return failure
		}
		_, err := e.run("a", 5)
		wantIs(e.t, err, failure)
		if e.calls != 0 || len(e.pending()) != 0 || e.stock(1).Left != 9 {
			e.t.Errorf("%d calls, pending %+v, stock %+v", e.calls, e.pending(), e.stock(1))
		}
		e.reserve = nil
		got, err := e.run("a", 5)
		wantAnswer(e.t, got, err, guard.Answer[receipt]{Value: receipt{Note: "charge 1 of 5"}})
		e.paid()
	})
}

// allTakeOver locks what is pending, on PostgreSQL, until so many have sent the statement that takes it over.
func (e *paying) allTakeOver(peers int) (together func()) {
	if e.db.Name() != "postgres" {
		return func() {}
	}
	const sending = "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND state = 'active' AND query LIKE 'UPDATE belay_pending SET attempt%'"
	locked := e.db.Begin()
	wantNil(e.t, locked.Exec("UPDATE belay_pending SET tries = tries").Error)
	return func() {
		e.t.Helper()
		testwait.Until(e.t, "all have sent it", func() bool {
			var n int
			return e.db.Raw(sending).Scan(&n).Error == nil && n == peers
		})
		wantNil(e.t, locked.Rollback().Error)
	}
}

// TestOneTakesOver: of those who come at once for a request whose process has died, one calls, though
// they share no lock.
func TestOneTakesOver(t *testing.T) {
	t.Parallel()
	withCalls(t, func(e *paying) {
		e.fails = errors.New("dead")
		_, err := e.run("a", 5)
		wantIs(e.t, err, guard.ErrPending)
		e.fails = nil
		const peers = 6
		var others atomic.Int32
		done := make(chan struct{})
		e.meantime = func(context.Context) { <-done }
		together := e.allTakeOver(peers)
		var wg sync.WaitGroup
		for range peers {
			g := guardtest.New(e.t, e.db)
			wg.Go(func() {
				if _, err := e.runBy(g.Guard, "a", 5); errors.Is(err, guard.ErrBusy) || guard.Transient(err) {
					if others.Add(1) == peers-1 {
						close(done)
					}
				} else if err != nil {
					e.t.Error(err)
				}
			})
		}
		together()
		testwait.Until(e.t, "one calls, and the others are busy", func() bool { return others.Load() >= peers-1 })
		wg.Wait()
		if e.paid(); e.calls != 2 {
			e.t.Errorf("%d calls, want 2", e.calls)
		}
	})
}

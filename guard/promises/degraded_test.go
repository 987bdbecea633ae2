package promises_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"gorm.io/gorm"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/guard/guardtest"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/lock/redislock"
	"github.com/belaygo/belay/notify"
)

// flaky is an engine on two nodes, a and b, that can be away. Keys that begin
// with b are on b.
type flaky struct {
	lockengine.Engine
	down  [2]atomic.Bool
	moved atomic.Bool   // keys of a are said to be on c
	mute  atomic.Bool   // nothing is answered
	slow  chan struct{} // closed when acquires of the key "slow" fail
	asked atomic.Int64  // acquires
	found atomic.Int64  // questions where a key is

	refused  atomic.Int64 // acquires of what another had
	unusable string       // a key
}

func (f *flaky) shard(key string) int {
	if key[0] == 'b' {
		return 1
	}
	return 0
}

func (f *flaky) err(key string) error {
	if f.down[f.shard(key)].Load() {
		return errBroken
	}
	return nil
}

func (f *flaky) Locate(key string) lockengine.Place {
	at := lockengine.Place{Node: string("ab"[f.shard(key)]), Slot: -1}
	if at.Node == "a" && f.moved.Load() {
		at.Node = "c"
	}
	f.found.Add(1)
	return at
}

func (f *flaky) Acquire(ctx context.Context, h lockengine.Request, ttl time.Duration) (lockengine.Grant, error) {
	f.asked.Add(1)
	if f.mute.Load() {
		<-ctx.Done()
		return lockengine.Grant{}, lockengine.ErrNoAnswer
	}
	err := f.err(h.Key)
	if h.Key == "slow" && err != nil {
		<-f.slow
	}
	if h.Key == f.unusable {
		err = lockengine.ErrUnusable
	}
	if err != nil {
		return lockengine.Grant{}, err
	}
	g, err := f.Engine.Acquire(ctx, h, ttl)
	if err != nil {
		f.refused.Add(1)
	}
	return g, err
}

func (f *flaky) Release(ctx context.Context, h lockengine.Request) error {
	if err := f.err(h.Key); err != nil {
		return err
	}
	return f.Engine.Release(ctx, h)
}

func (f *flaky) Inspect(ctx context.Context, key string) (lockengine.Holder, error) {
	if err := f.err(key); err != nil {
		return lockengine.Holder{}, err
	}
	return f.Engine.Inspect(ctx, key)
}

// dbOnly returns a guard with the policy DBOnly, whose engine is away.
func (e *env) dbOnly(cfg guard.Config) (*guard.Guard, *flaky) {
	e.t.Helper()
	engine := &flaky{Engine: e.Engine(), slow: make(chan struct{})}
	engine.down[0].Store(true)
	locker, err := lock.New(engine, lock.Config{TTL: 2 * time.Second})
	wantNil(e.t, err)
	cfg.Service, cfg.OnUnavailable = "degraded", guard.DBOnly
	if cfg.Publisher == nil {
		cfg.Publisher = &e.Events
	}
	g, err := guard.New(e.db, locker, cfg)
	wantNil(e.t, err)
	e.t.Cleanup(func() {
		err := g.Close(bg)
		engine.down[0].Store(false) // or the Locker would go on asking
		engine.down[1].Store(false)
		if err := errors.Join(err, locker.Close(bg)); err != nil {
			e.t.Error(err)
		}
	})
	return g, engine
}

func (e *env) wantDegraded(i int, o notify.Outcome, count int) {
	e.t.Helper()
	events := e.Events.All()
	if len(events) != i+1 {
		e.t.Fatalf("%d events, want %d: %+v", len(events), i+1, events)
	}
	ev := events[i]
	if ev.Verdict != notify.VerdictDegraded || ev.Outcome != o || ev.Count != count || ev.Place.Node != "a" {
		e.t.Errorf("event is %+v, want degraded, %s, of %d operations on a", ev, o, count)
	}
	if err := ev.Validate(); err != nil {
		e.t.Error(err)
	}
}

// awaitEnd waits until nothing runs without the lock any more that begins now.
func (e *env) awaitEnd(g *guard.Guard) {
	e.t.Helper()
	testwait.Until(e.t, "the outage ends", func() bool { return metricsOf(e.t, g)["degraded"] == 0 })
}

func TestDBOnly(t *testing.T) {
	each(t, func(e *env) {
		g, engine := e.dbOnly(guard.Config{})
		e.create(&Stock{ID: 1, Left: 5})
		wantNil(e.t, g.Apply(bg, "order:a", guard.Insert(&Order{No: "a"})))
		e.wantDegraded(0, notify.OutcomeUnknown, 1)
		wantIs(e.t, g.Apply(bg, "order:a", guard.Insert(&Order{No: "a"})), guard.ErrDuplicate)
		wantNil(e.t, g.Apply(bg, "sku:1", guard.Update(&Stock{ID: 1}, take)))
		wantIs(e.t, g.Apply(bg, "sku:1", guard.Update(&Stock{ID: 1, Version: 1}, take)), guard.ErrStale)
		if n := engine.asked.Load(); n != 1 {
			e.t.Errorf("the lock was asked for %d times, want once in an outage", n)
		}

		engine.down[0].Store(false)
		testwait.Until(e.t, "the end of the outage is reported", func() bool { return len(e.Events.All()) == 2 })
		e.wantDegraded(1, notify.OutcomeCommitted, 2)
		wantNil(e.t, g.Apply(bg, "order:b", guard.Insert(&Order{No: "b"})))
		if n := engine.asked.Load(); n != 2 {
			e.t.Errorf("the lock was asked for %d times, want again after the outage", n)
		}
	})
}

// TestSetPolicy: who is on call lets operations go on while Redis is away, and stops them
// again, without a restart.
func TestSetPolicy(t *testing.T) {
	e := onSQLite(t)
	g, engine := e.dbOnly(guard.Config{})
	if err := g.SetPolicy(7); err == nil || g.Policy() != guard.DBOnly {
		t.Errorf("SetPolicy(7): %v, %v", err, g.Policy())
	}
	wantNil(t, g.SetPolicy(guard.FailClosed))
	wantIs(t, g.Apply(bg, "order:a", guard.Insert(&Order{No: "a"})), guard.ErrUnavailable)
	wantNil(t, g.SetPolicy(guard.DBOnly))
	wantNil(t, g.Apply(bg, "order:a", guard.Insert(&Order{No: "a"})))
	wantNil(t, g.SetPolicy(guard.FailClosed)) // in an outage that has begun
	wantIs(t, g.Apply(bg, "order:b", guard.Insert(&Order{No: "b"})), guard.ErrUnavailable)
	engine.down[0].Store(false)
	wantNil(t, g.Apply(bg, "order:b", guard.Insert(&Order{No: "b"})))
	e.awaitEnd(g)
}

// TestSetPolicyLogged: a change is logged once, in words, also as JSON.
func TestSetPolicyLogged(t *testing.T) {
	e := onSQLite(t)
	var log bytes.Buffer
	g, engine := e.dbOnly(guard.Config{Logger: slog.New(slog.NewJSONHandler(&log, nil))})
	engine.down[0].Store(false)
	wantNil(t, g.SetPolicy(guard.FailClosed))
	wantNil(t, g.SetPolicy(guard.FailClosed))
	if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, `"from":"DBOnly","to":"FailClosed"`) {
		t.Errorf("logged %s", got)
	}
}

// TestDBOnlyUncovered: what only the lock would guard is not done without it.
func TestDBOnlyUncovered(t *testing.T) {
	each(t, func(e *env) {
		g, engine := e.dbOnly(guard.Config{})
		e.create(&Stock{ID: 1, Left: 5})
		for name, op := range map[string]guard.Op{
			"raw SQL": func(_ context.Context, tx *gorm.DB) error {
				return tx.Exec("UPDATE stocks SET " + tx.Statement.Quote("left") + " = 0").Error
			},
			"a condition only": func(_ context.Context, tx *gorm.DB) error {
				return tx.Model(&Stock{}).Where("id = ?", 1).Update("left", 0).Error
			},
			"the covering write undone": func(_ context.Context, tx *gorm.DB) error {
				_ = tx.Transaction(func(tx *gorm.DB) error {
					s := e.stockIn(tx, 1)
					wantNil(e.t, tx.Model(&s).Update("left", 3).Error)
					return errSoldOut
				})
				return tx.Create(&Order{No: "x"}).Error
			},
			"unprotected": func(_ context.Context, tx *gorm.DB) error {
				return tx.Create(&Order{No: "x"}).Error
			},
		} {
			err := g.Do(bg, "sku:1", op, guard.Protects(&Stock{ID: 1}))
			if !errors.Is(err, guard.ErrUnavailable) || !errors.Is(err, errBroken) {
				e.t.Errorf("%s: error is %v, want ErrUnavailable and its cause", name, err)
			}
		}
		if s := e.stock(1); s.Left != 5 {
			e.t.Errorf("stock is %+v, want it unchanged", s)
		}
		if n := e.count(&Order{}); n != 0 {
			e.t.Errorf("%d rows that nothing guards", n)
		}
		wantNil(e.t, g.Do(bg, "sku:1", func(_ context.Context, tx *gorm.DB) error {
			return tx.Take(&Stock{}, 1).Error
		}))
		e.wantDegraded(0, notify.OutcomeUnknown, 1)
		engine.down[0].Store(false)
		testwait.Until(e.t, "the end of the outage is reported", func() bool { return len(e.Events.All()) == 2 })
		e.wantDegraded(1, notify.OutcomeCommitted, 1)
	})
}

// TestDBOnlyQueue: the callers of one process still go one after the other.
func TestDBOnlyQueue(t *testing.T) {
	each(t, func(e *env) {
		g, _ := e.dbOnly(guard.Config{})
		next := make(chan error, 1)
		wantNil(e.t, g.Do(bg, "k", func(ctx context.Context, tx *gorm.DB) error {
			wantIs(e.t, g.Apply(bg, "k", guard.Insert(&Order{No: "a"})), guard.ErrBusy)
			ended, cancel := context.WithTimeout(bg, 10*time.Millisecond)
			defer cancel()
			err := g.Apply(ended, "k", guard.Insert(&Order{No: "a"}), guard.Wait(time.Minute))
			wantIs(e.t, err, guard.ErrBusy)
			wantIs(e.t, err, context.DeadlineExceeded)
			go func() { next <- g.Apply(bg, "k", guard.Insert(&Order{No: "a"}), guard.Wait(time.Minute)) }()
			return guard.Insert(&Order{No: "b"}).Run(ctx, tx)
		}))
		wantNil(e.t, <-next)
		wantIs(e.t, g.Do(bg, "a{", guard.Insert(&Order{No: "c"}).Run), lock.ErrInvalidKey)
		if n := e.count(&Order{}); n != 2 {
			e.t.Errorf("%d rows, want 2", n)
		}
	})
}

// TestDBOnlyLimit: no more than so many run without the lock, whatever the keys.
func TestDBOnlyLimit(t *testing.T) {
	t.Parallel()
	each(t, func(e *env) {
		g, _ := e.dbOnly(guard.Config{DBOnlyLimit: 1})
		wantNil(e.t, g.Do(bg, "k1", func(context.Context, *gorm.DB) error {
			ended, cancel := context.WithTimeout(bg, 100*time.Millisecond)
			defer cancel()
			err := g.Apply(ended, "k2", guard.Insert(&Order{No: "a"}))
			wantIs(e.t, err, guard.ErrUnavailable)
			wantIs(e.t, err, context.DeadlineExceeded)
			wantIs(e.t, g.Apply(bg, "k2", guard.Insert(&Order{No: "a"})), guard.ErrUnavailable) // after half a ttl
			return nil
		}))
		wantNil(e.t, g.Apply(bg, "k2", guard.Insert(&Order{No: "a"})))
	})
}

// TestDBOnlyByShard: an outage is one of a place, not of all.
func TestDBOnlyByShard(t *testing.T) {
	each(t, func(e *env) {
		g, engine := e.dbOnly(guard.Config{})
		wantNil(e.t, g.Apply(bg, "a:1", guard.Insert(&Order{No: "1"})))
		before := engine.asked.Load()
		wantNil(e.t, g.Apply(bg, "b:1", guard.Insert(&Order{No: "2"})))
		wantNil(e.t, g.Apply(bg, "a:2", guard.Insert(&Order{No: "3"})))
		if n := engine.asked.Load() - before; n != 1 {
			e.t.Errorf("the lock was asked for %d times, want once, on b", n)
		}
		e.wantDegraded(0, notify.OutcomeUnknown, 1)

		engine.down[1].Store(true)
		wantNil(e.t, g.Apply(bg, "b:2", guard.Insert(&Order{No: "4"})))
		if events := e.Events.All(); len(events) != 2 || events[1].Place.Node != "b" {
			e.t.Errorf("events are %+v, want another of b", events)
		}
	})
}

// TestDBOnlyBesideHolders has one process go without the lock while another has
// it: the database decides, and he who has the lock reports.
func TestDBOnlyBesideHolders(t *testing.T) {
	eachServer(t, func(e *env) {
		g, _ := e.dbOnly(guard.Config{})
		err := e.Do(bg, "order:a", func(ctx context.Context, tx *gorm.DB) error {
			wantNil(e.t, g.Apply(bg, "order:a", guard.Insert(&Order{No: "a"})))
			return guard.Insert(&Order{No: "a"}).Run(ctx, tx)
		}, guard.Protects(&Order{No: "a"}))
		wantIs(e.t, err, guard.ErrIntercepted)
		e.wantDegradedThen(notify.VerdictOverlap, notify.HolderSelf)

		// What it swallows is not committed if it proves another writer.
		err = g.Do(bg, "order:b", func(ctx context.Context, tx *gorm.DB) error {
			wantNil(e.t, e.Apply(bg, "order:b", guard.Insert(&Order{No: "b"})))
			_ = guard.Insert(&Order{No: "b"}).Run(ctx, tx)
			return nil
		}, guard.Protects(&Order{No: "b"}))
		wantIs(e.t, err, guard.ErrDuplicate)
		if events := e.Events.All(); len(events) != 2 {
			e.t.Errorf("%d events, want no more than 2: %+v", len(events), events)
		}
	})
}

// TestLostRaceIsRunAgain: without the lock another may update the row first. Who brought
// no version has a new try, and not without end.
func TestLostRaceIsRunAgain(t *testing.T) {
	eachServer(t, func(e *env) {
		g, _ := e.dbOnly(guard.Config{})
		const left = 9
		for id, tt := range []struct {
			name    string
			version dbguard.Version
			custom  bool
			opts    []guard.Option
			lost    int // races, at most
			tries   int
			want    error
		}{
			{name: "once", lost: 1, tries: 2},
			{name: "each time", lost: 100, tries: 4, want: guard.ErrStale},
			{name: "with a version", version: 1, lost: 100, tries: 1, want: guard.ErrStale},
			{name: "in another operation", custom: true, lost: 1, tries: 1, want: guard.ErrStale},
			{name: "in another that may be run again", custom: true, opts: []guard.Option{guard.Retries(1)}, lost: 1, tries: 2},
		} {
			id, key := int64(id+1), fmt.Sprint("sku:", id)
			e.create(&Stock{ID: id, Left: left})
			tries := 0
			update := guard.Update(&Stock{ID: id, Version: tt.version}, func(s *Stock) error {
				if tries++; tries <= tt.lost {
					wantNil(e.t, e.Apply(bg, key, guard.Update(&Stock{ID: id}, take)))
				}
				return take(s)
			})
			var err error
			if tt.custom {
				err = g.Do(bg, key, update.Run, tt.opts...)
			} else {
				err = g.Apply(bg, key, update, tt.opts...)
			}
			if tries != tt.tries || tt.want != nil && !errors.Is(err, tt.want) || tt.want == nil && err != nil {
				e.t.Errorf("%s: %v after %d tries, want %v after %d", tt.name, err, tries, tt.want, tt.tries)
			}
			taken := min(tries, tt.lost) // by the others
			if err == nil {
				taken++
			}
			if s := e.stock(id); s.Left != left-taken {
				e.t.Errorf("%s: left %d, want %d", tt.name, s.Left, left-taken)
			}
		}
		if events := e.Events.All(); len(events) != 1 {
			e.t.Errorf("%d events, want one of the outage: %+v", len(events), events)
		}
	})
}

// wantDegradedThen checks the second of two events.
func (e *env) wantDegradedThen(v notify.Verdict, r notify.Holder) {
	e.t.Helper()
	events := e.Events.All()
	if len(events) != 2 || events[0].Verdict != notify.VerdictDegraded || events[1].Verdict != v || events[1].HolderAtConflict != r {
		e.t.Errorf("events are %+v, want degraded and %s, held by %s", events, v, r)
	}
}

// TestDBOnlyWithoutRedis has no Redis at all, under either policy.
func TestDBOnlyWithoutRedis(t *testing.T) {
	t.Parallel()
	each(t, func(e *env) {
		engine, err := redislock.Open(&redis.UniversalOptions{IsClusterMode: true, Addrs: []string{"127.0.0.1:1"}}, redislock.Config{})
		wantNil(e.t, err)
		defer engine.Close(bg)
		locker, err := lock.New(engine, lock.Config{TTL: time.Second})
		wantNil(e.t, err)
		defer locker.Close(bg)
		for _, policy := range []guard.Policy{guard.FailClosed, guard.DBOnly} {
			g, err := guard.New(e.db, locker, guard.Config{Service: "s", Publisher: &e.Events, OnUnavailable: policy})
			wantNil(e.t, err)
			err = g.Apply(bg, "order:a", guard.Insert(&Order{No: "a"}))
			if policy == guard.FailClosed {
				wantIs(e.t, err, guard.ErrUnavailable)
				wantNil(e.t, g.Close(bg))
				e.wantEvent(notify.VerdictUnavailable, notify.OutcomeRolledBack, "order:a")
				e.Events = guardtest.Recorder{}
			} else {
				wantNil(e.t, err)
				wantIs(e.t, g.Apply(bg, "order:a", guard.Insert(&Order{No: "a"}), guard.Remember(time.Minute)), guard.ErrDuplicate)
				e.wantEvent(notify.VerdictDegraded, notify.OutcomeUnknown, "order:a")
				wantMetrics(e.t, g, map[string]float64{"degraded": 1, "without_lock_total": 2})
			}
			wantNil(e.t, g.Close(bg))
		}
	})
}

// TestInsideALease: a context that carries a lease keeps its caller from waiting
// for himself, in an outage, too; but a place in the local queue is no lock.
func TestInsideALease(t *testing.T) {
	each(t, func(e *env) {
		engine := &flaky{Engine: e.Engine()}
		locker, err := lock.New(engine, lock.Config{TTL: 2 * time.Second})
		wantNil(e.t, err)
		blind := func(_ context.Context, tx *gorm.DB) error {
			return tx.Model(&Stock{}).Where("id = ?", 1).Update("left", 0).Error
		}
		e.create(&Stock{ID: 1, Left: 5})
		for _, policy := range []guard.Policy{guard.FailClosed, guard.DBOnly} {
			g, err := guard.New(e.db, locker, guard.Config{Service: "s", Publisher: &e.Events, OnUnavailable: policy})
			wantNil(e.t, err)
			lease, err := locker.Acquire(bg, "sku:1", lock.Local())
			wantNil(e.t, err)
			wantIs(e.t, g.Do(lease.Context(), "sku:1", blind), guard.ErrUnavailable)
			wantNil(e.t, lease.Release(bg))
			wantNil(e.t, g.Do(bg, "sku:1", func(context.Context, *gorm.DB) error { return nil }))
			if s := e.stock(1); s.Left != 5 {
				e.t.Errorf("stock is %+v, want it unchanged", s)
			}
			wantNil(e.t, g.Close(bg))
		}

		lease, err := locker.Acquire(bg, "sku:1")
		wantNil(e.t, err)
		g, err := guard.New(e.db, locker, guard.Config{Service: "s", Publisher: &e.Events, OnUnavailable: guard.DBOnly})
		wantNil(e.t, err)
		engine.down[0].Store(true)
		wantNil(e.t, g.Apply(bg, "sku:2", guard.Insert(&Order{No: "a"}))) // there is an outage
		wantNil(e.t, g.Apply(lease.Context(), "sku:1", guard.Update(&Stock{ID: 1}, take)))
		wantNil(e.t, g.Do(lease.Context(), "sku:1", blind)) // it has the lock
		engine.down[0].Store(false)
		wantNil(e.t, lease.Release(bg))
		wantNil(e.t, g.Close(bg))
		wantNil(e.t, locker.Close(bg))
	})
}

func TestUnavailableConfig(t *testing.T) {
	e := onSQLite(t)
	locker, err := lock.New(e.Engine(), lock.Config{})
	wantNil(t, err)
	defer locker.Close(bg)
	for _, cfg := range []guard.Config{
		{Service: "s", OnUnavailable: 7},
		{Service: "s", DBOnlyLimit: -1},
		{Service: "s", EndTimeout: -1},
	} {
		if _, err := guard.New(e.db, locker, cfg); err == nil {
			t.Errorf("New accepts %+v", cfg)
		}
	}
}

// TestOutageEndsThoughItsBeginPanicked: a Publisher that panics does not leave a node
// without its lock for ever.
func TestOutageEndsThoughItsBeginPanicked(t *testing.T) {
	each(t, func(e *env) {
		panics := notify.PublisherFunc(func(_ context.Context, ev notify.Event) error {
			if ev.Outcome == notify.OutcomeUnknown {
				panic("the publisher panics")
			}
			return nil
		})
		g, engine := e.dbOnly(guard.Config{Publisher: panics})
		nop := func(context.Context, *gorm.DB) error { return nil }
		engine.down[0].Store(true)
		func() {
			defer func() {
				if recover() == nil {
					e.t.Error("the panic did not go on")
				}
			}()
			_ = g.Do(bg, "a", nop)
		}()
		engine.down[0].Store(false)
		e.awaitEnd(g)
		asked := engine.asked.Load()
		wantNil(e.t, g.Do(bg, "a", nop))
		if engine.asked.Load() == asked {
			e.t.Error("the lock is not asked for")
		}
	})
}

// An untraced observer panics when it is asked for a trace.
type untraced struct{ guard.Observer }

func (untraced) Start(ctx context.Context, _ guard.Step, _ string) (context.Context, func(error)) {
	return ctx, func(error) {}
}

func (untraced) Trace(context.Context) notify.Trace { panic("an observer") }

// TestEventsWithoutTrace: an Observer that panics costs an event its trace, also that of the end of
// an outage, where no caller could recover it.
func TestEventsWithoutTrace(t *testing.T) {
	var events atomic.Int32
	e := onSQLite(t)
	g, engine := e.dbOnly(guard.Config{
		Observer: untraced{}, Logger: slog.New(slog.DiscardHandler),
		Publisher: notify.PublisherFunc(func(context.Context, notify.Event) error {
			events.Add(1)
			return nil
		}),
	})
	engine.down[0].Store(true)
	wantNil(t, g.Do(bg, "a", func(context.Context, *gorm.DB) error { return nil }))
	engine.down[0].Store(false)
	e.awaitEnd(g)
	testwait.Until(t, "both ends of the outage are reported", func() bool { return events.Load() == 2 })
}

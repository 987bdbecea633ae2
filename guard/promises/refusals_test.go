package promises_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/guard/guardtest"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/lock/memlock"
	"github.com/belaygo/belay/lock/redislock"
	"github.com/belaygo/belay/notify"
)

// refuser is a guard with the policy FailClosed in a bubble, whose operations never reach
// the database.
type refuser struct {
	t      *testing.T
	guard  *guard.Guard
	locker *lock.Locker
	engine *flaky
	events guardtest.Recorder
	seen   int // events
}

// inBubble runs test on a guard whose engine is well.
func inBubble(t *testing.T, test func(r *refuser)) {
	db := testdb.OpenSQLite(t, filepath.Join(t.TempDir(), "a.db"))
	synctest.Test(t, func(t *testing.T) {
		r := &refuser{t: t, engine: &flaky{Engine: memlock.New()}}
		var err error
		r.locker, err = lock.New(r.engine, lock.Config{TTL: time.Second})
		wantNil(t, err)
		r.guard, err = guard.New(db, r.locker, guard.Config{Service: "s", Publisher: &r.events})
		wantNil(t, err)
		defer func() {
			wantNil(t, r.guard.Close(bg))
			wantNil(t, r.locker.Close(bg))
		}()
		test(r)
	})
}

// refuse has so many operations on a key refused.
func (r *refuser) refuse(key string, times int) {
	r.t.Helper()
	for range times {
		wantIs(r.t, r.guard.Apply(bg, key, guard.Insert(&Order{No: "a"})), guard.ErrUnavailable)
	}
}

// wantRefused checks that new events tell of so many operations each.
func (r *refuser) wantRefused(node string, counts ...int) {
	r.t.Helper()
	synctest.Wait()
	events := r.events.All()[r.seen:]
	r.seen += len(events)
	if len(events) != len(counts) {
		r.t.Fatalf("%d events, want %d: %+v", len(events), len(counts), events)
	}
	for i, ev := range events {
		if ev.Verdict != notify.VerdictUnavailable || ev.Outcome != notify.OutcomeRolledBack || ev.Count != counts[i] || ev.Place.Node != node ||
			ev.Owner != "" || !ev.AcquiredAt.IsZero() {
			r.t.Errorf("event is %+v, want unavailable, rolled back, of %d operations on %s", ev, counts[i], node)
		}
		if err := ev.Validate(); err != nil {
			r.t.Error(err)
		}
	}
}

// TestRefusalsAreReported: soon after the first refusal, then every now and then, until
// nobody is refused any more, and again in the next outage.
func TestRefusalsAreReported(t *testing.T) {
	inBubble(t, func(r *refuser) {
		for range 2 {
			r.engine.down[0].Store(true)
			first := time.Now()
			r.refuse("k1", 1)
			r.refuse("k2", 2)
			<-time.After(2*time.Second - 1)
			r.wantRefused("a")
			<-time.After(1)
			synctest.Wait()
			if ev := r.events.All()[r.seen]; ev.Key != "k1" || !ev.CaughtAt.Equal(first) {
				r.t.Errorf("event tells of %q at %v, want of k1, the first, at %v", ev.Key, ev.CaughtAt, first)
			}
			r.wantRefused("a", 3)

			for _, seconds := range []int{10, 20, 40, 60, 60} { // the outage goes on
				r.refuse("k3", 4)
				<-time.After(time.Duration(seconds)*time.Second - 1)
				r.wantRefused("a")
				<-time.After(1)
				r.wantRefused("a", 4)
			}
			r.engine.down[0].Store(false)
			<-time.After(time.Hour)
			r.wantRefused("a")
			wantMetrics(r.t, r.guard, map[string]float64{"degraded": 0, "without_lock_total": 0})
		}
		wantMetrics(r.t, r.guard, map[string]float64{"events_total unavailable": 12, "operations_total unavailable": 46})
	})
}

// TestRefusalsByNode: each node has events of its own.
func TestRefusalsByNode(t *testing.T) {
	inBubble(t, func(r *refuser) {
		r.engine.down[0].Store(true)
		r.engine.down[1].Store(true)
		r.refuse("a", 2)
		<-time.After(time.Second)
		r.refuse("b", 3)
		<-time.After(time.Second)
		r.wantRefused("a", 2)
		<-time.After(time.Second)
		r.wantRefused("b", 3)
	})
}

// late is an engine whose grants come when their time is over.
type late struct{ lockengine.Engine }

func (e late) Acquire(ctx context.Context, h lockengine.Request, ttl time.Duration) (lockengine.Grant, error) {
	g, err := e.Engine.Acquire(ctx, h, ttl)
	<-time.After(ttl)
	return g, err
}

// TestLateGrantIsARefusal: an operation that has not run has lost no lock. Its error says
// the same as the event that counts it.
func TestLateGrantIsARefusal(t *testing.T) {
	for _, policy := range []guard.Policy{guard.FailClosed, guard.DBOnly} {
		db := testdb.OpenSQLite(t, filepath.Join(t.TempDir(), "a.db"))
		wantNil(t, db.AutoMigrate(&Stock{}))
		wantNil(t, db.Create(&Stock{ID: 1, Left: 5}).Error)
		locker, err := lock.New(late{memlock.New()}, lock.Config{TTL: 100 * time.Millisecond})
		wantNil(t, err)
		var events guardtest.Recorder
		g, err := guard.New(db, locker, guard.Config{Service: "s", Publisher: &events, OnUnavailable: policy})
		wantNil(t, err)
		err = g.Do(bg, "k", func(_ context.Context, tx *gorm.DB) error {
			return tx.Model(&Stock{}).Where("id = ?", 1).UpdateColumn("left", 1).Error // which only the lock would guard
		})
		wantIs(t, err, guard.ErrUnavailable)
		if errors.Is(err, guard.ErrLost) {
			t.Errorf("policy %d: error is %v, which matches ErrLost", policy, err)
		}
		wantNil(t, g.Close(bg))
		wantNil(t, locker.Close(bg))
		if n := refusalsIn(events.All()); policy == guard.FailClosed && n != 1 {
			t.Errorf("events tell of %d refusals, want 1", n)
		}
	}
}

// manyNodes is an engine that is away, with a node for each key.
type manyNodes struct{ lockengine.Engine }

func (manyNodes) Locate(key string) lockengine.Place {
	return lockengine.Place{Node: key, Slot: -1}
}

func (manyNodes) Acquire(context.Context, lockengine.Request, time.Duration) (lockengine.Grant, error) {
	return lockengine.Grant{}, errBroken
}

// TestRefusalsOfManyNodes: however many nodes there are, events are few and complete, and
// none blames one node for the refusals of others.
func TestRefusalsOfManyNodes(t *testing.T) {
	db := testdb.OpenSQLite(t, filepath.Join(t.TempDir(), "a.db"))
	synctest.Test(t, func(t *testing.T) {
		locker, err := lock.New(manyNodes{memlock.New()}, lock.Config{})
		wantNil(t, err)
		var events guardtest.Recorder
		g, err := guard.New(db, locker, guard.Config{Service: "s", Publisher: &events})
		wantNil(t, err)
		const nodes = 1000
		for i := range nodes {
			wantIs(t, g.Apply(bg, fmt.Sprint("node", i), guard.Insert(&Order{No: "a"})), guard.ErrUnavailable)
		}
		wantNil(t, g.Close(bg))
		wantNil(t, locker.Close(bg))
		all := events.All()
		if n := refusalsIn(all); n != nodes || len(all) > 65 {
			t.Errorf("%d events tell of %d refusals, want %d in 65 events at most", len(all), n, nodes)
		}
		for _, ev := range all {
			if err := ev.Validate(); ev.Place.Node != "" && ev.Count != 1 || err != nil {
				t.Errorf("event tells of %d refusals on %q, want 1 on each node (%v)", ev.Count, ev.Place.Node, err)
			}
		}
	})
}

// refusalsIn adds up the refusals that events tell of.
func refusalsIn(events []notify.Event) (n int) {
	for _, ev := range events {
		if ev.Verdict == notify.VerdictUnavailable {
			n += ev.Count
		}
	}
	return n
}

// TestCloseReportsRefusals: Close publishes what is counted, and what is refused while
// it waits.
func TestCloseReportsRefusals(t *testing.T) {
	inBubble(t, func(r *refuser) {
		r.engine.slow = make(chan struct{})
		r.engine.down[0].Store(true)
		late := make(chan error, 1)
		go func() { late <- r.guard.Apply(bg, "slow", guard.Insert(&Order{No: "a"})) }()
		synctest.Wait() // it asks for its lock
		r.refuse("k", 5)
		closed := make(chan error, 1)
		go func() { closed <- r.guard.Close(bg) }()
		r.wantRefused("a", 5)
		close(r.engine.slow)
		wantIs(r.t, <-late, guard.ErrUnavailable)
		wantNil(r.t, <-closed)
		r.wantRefused("a", 1)
	})
}

// TestPanicOfThePublisher: a publisher that panics while refusals are reported costs their event,
// not the process.
func TestPanicOfThePublisher(t *testing.T) {
	db := testdb.OpenSQLite(t, filepath.Join(t.TempDir(), "a.db"))
	synctest.Test(t, func(t *testing.T) {
		engine := &flaky{Engine: memlock.New()}
		engine.down[0].Store(true)
		locker, err := lock.New(engine, lock.Config{})
		wantNil(t, err)
		asked := 0
		publisher := notify.PublisherFunc(func(context.Context, notify.Event) error {
			if asked++; asked == 1 {
				panic("a publisher")
			}
			return nil
		})
		g, err := guard.New(db, locker, guard.Config{Service: "s", Publisher: publisher, Logger: slog.New(slog.DiscardHandler)})
		wantNil(t, err)
		for range 2 {
			wantIs(t, g.Apply(bg, "k", guard.Insert(&Order{No: "a"})), guard.ErrUnavailable)
			<-time.After(5 * time.Second)
		}
		wantNil(t, g.Close(bg))
		wantNil(t, locker.Close(bg))
		if asked != 2 {
			t.Errorf("the publisher was called %d times, want twice", asked)
		}
	})
}

// TestNoRefusalToReport: what is no failure of the lock is not reported as one.
func TestNoRefusalToReport(t *testing.T) {
	inBubble(t, func(r *refuser) {
		op := guard.Insert(&Order{No: "a"}).Run
		lease, err := r.locker.Acquire(bg, "k")
		wantNil(r.t, err)
		wantIs(r.t, r.guard.Do(bg, "k", op), guard.ErrBusy)
		wantIs(r.t, r.guard.Do(bg, "k", op, guard.Wait(time.Second)), guard.ErrBusy)
		wantNil(r.t, lease.Release(bg))

		wantIs(r.t, r.guard.Do(bg, "a{", op), lock.ErrInvalidKey)
		r.engine.unusable = "bad"
		wantIs(r.t, r.guard.Do(bg, "bad", op), lockengine.ErrUnusable)

		local, err := r.locker.Acquire(bg, "k", lock.Local())
		wantNil(r.t, err)
		wantIs(r.t, r.guard.Do(local.Context(), "k", op), guard.ErrUnavailable) // a mistake of the program
		wantNil(r.t, local.Release(bg))

		r.engine.mute.Store(true)
		ctx, cancel := context.WithTimeout(bg, 100*time.Millisecond)
		defer cancel()
		err = r.guard.Do(ctx, "k", op)
		wantIs(r.t, err, context.DeadlineExceeded)
		if errors.Is(err, guard.ErrUnavailable) {
			r.t.Errorf("error is %v, want that of the caller's context", err)
		}
		r.engine.mute.Store(false)

		<-time.After(time.Minute)
		r.wantRefused("a")
		wantNil(r.t, r.guard.Close(bg))
		r.wantRefused("a")
	})
}

// TestSilentRedisIsReported: that callers give up before Redis is given up does not
// hide the outage.
func TestSilentRedisIsReported(t *testing.T) {
	inBubble(t, func(r *refuser) {
		r.engine.mute.Store(true)
		for range 2 {
			ctx, cancel := context.WithTimeout(bg, 600*time.Millisecond)
			err := r.guard.Apply(ctx, "k", guard.Insert(&Order{No: "a"}))
			cancel()
			wantIs(r.t, err, context.DeadlineExceeded)
		}
		ctx, cancel := context.WithCancel(bg)
		stop := time.AfterFunc(600*time.Millisecond, cancel)
		defer stop.Stop()
		wantIs(r.t, r.guard.Apply(ctx, "k", guard.Insert(&Order{No: "a"})), context.Canceled)
		r.engine.mute.Store(false)
		<-time.After(time.Minute)
		r.wantRefused("a", 2)
	})
}

// TestRedisKilledUnderLoad: while Redis is well nothing is published; when it is killed, events tell
// of as many operations as were refused. TestRefusalsAreReported has the time of the first.
func TestRedisKilledUnderLoad(t *testing.T) {
	e, _ := linked(t)
	client, server := ownRedis(t, "maxmemory", "0")
	engine, err := redislock.New(client, redislock.Config{})
	wantNil(t, err)
	defer engine.Close(bg)
	locker, err := lock.New(engine, lock.Config{TTL: time.Second})
	wantNil(t, err)
	defer locker.Close(bg)
	g, err := guard.New(e.db, locker, guard.Config{Service: "s", Publisher: &e.Events})
	wantNil(t, err)

	const callers = 8
	var done, refused atomic.Int64
	stop, ended := make(chan struct{}), make(chan error, callers)
	for caller := range callers {
		go func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					ended <- nil
					return
				default:
				}
				no := fmt.Sprint(caller, "-", n)
				err := g.Apply(bg, "order:"+no, guard.Insert(&Order{No: no}))
				switch {
				case err == nil:
					done.Add(1)
				case errors.Is(err, guard.ErrUnavailable):
					refused.Add(1)
				case !errors.Is(err, guard.ErrLost):
					ended <- err
					return
				}
			}
		}()
	}
	testwait.Until(t, "operations are done", func() bool { return done.Load() >= 100 })
	e.wantNoEvent()
	server.Kill()
	testwait.Until(t, "the first event is published", func() bool { return refusalsIn(e.Events.All()) > 0 })
	testwait.Until(t, "more are refused", func() bool { return refused.Load() > int64(refusalsIn(e.Events.All())) })
	close(stop)
	for range callers {
		wantNil(t, <-ended)
	}
	wantNil(t, g.Close(bg))
	if told := refusalsIn(e.Events.All()); int64(told) != refused.Load() {
		t.Errorf("events tell of %d refusals, want %d", told, refused.Load())
	}
	for _, ev := range e.Events.All() {
		if ev.Verdict == notify.VerdictUnavailable && ev.Place.Node != client.Options().Addr {
			t.Errorf("event is of %+v, want of %s", ev.Place, client.Options().Addr)
		}
	}
}

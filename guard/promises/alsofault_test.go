package promises_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/notify"
)

// TestEachKeyWithoutItsLockNeedsACoveredRow: what the database guards under one key does
// not make up for the missing lock on another.
func TestEachKeyWithoutItsLockNeedsACoveredRow(t *testing.T) {
	each(t, func(e *env) {
		e.twoAccounts()
		g, _ := e.dbOnly(guard.Config{})
		raw := func(ctx context.Context, tx *gorm.DB) error {
			if err := guard.Insert(&Order{No: "a"}).Run(ctx, tx); err != nil {
				return err
			}
			return tx.Exec("UPDATE stocks SET version = version + 1 WHERE id = 1").Error
		}
		wantIs(e.t, g.Do(bg, "b:request", raw, guard.Also("account:1")), guard.ErrUnavailable)
		wantIs(e.t, g.Do(bg, "request", raw, guard.Also("account:1")), guard.ErrUnavailable)
		wantNil(e.t, g.Do(bg, "b:request", func(ctx context.Context, tx *gorm.DB) error {
			return guard.All(guard.Insert(&Order{No: "a"}), guard.Update(&Stock{ID: 1}, take)).Run(ctx, tx)
		}, guard.Also("account:1", &Stock{ID: 1})))
		e.wantLeft(8, 9)
	})
}

// TestRowsOfATableUnderTwoKeys: a row that no Also names is the key of Do's, though an
// Also names another row of its table.
func TestRowsOfATableUnderTwoKeys(t *testing.T) {
	each(t, func(e *env) {
		again := func() error {
			return e.Apply(bg, "order:1", guard.All(guard.Insert(&Order{No: "1"}), guard.Insert(&Order{No: "2"})),
				guard.Also("order:2", &Order{No: "2"}))
		}
		wantNil(e.t, again())
		wantIs(e.t, again(), guard.ErrDuplicate)
		e.wantNoEvent()
	})
}

// TestConflictsOfTwoKeys: each is judged by the lock on its own key.
func TestConflictsOfTwoKeys(t *testing.T) {
	for name, swallow := range map[string]bool{"returned": false, "swallowed": true} {
		t.Run(name, func(t *testing.T) {
			each(t, func(e *env) {
				e.create(&Order{No: "1"}, &Order{No: "2"})
				err := e.Do(bg, "order:1", func(_ context.Context, tx *gorm.DB) error {
					wantIs(e.t, tryCreate(tx, &Order{No: "1"}), gorm.ErrDuplicatedKey)
					e.Forget("order:2")
					err := tryCreate(tx, &Order{No: "2"})
					if swallow {
						return nil
					}
					return err
				}, guard.Protects(&Order{No: "1"}), guard.Also("order:2", &Order{No: "2"}))
				wantIs(e.t, err, guard.ErrIntercepted)
				e.wantEvent(notify.VerdictLost, notify.OutcomeRefused, "order:2")
			})
		})
	}
}

// TestConflictOfRowsOfTwoKeys: a statement that met changed rows of two keys, of which one
// proves nothing, is an overlap of the other.
func TestConflictOfRowsOfTwoKeys(t *testing.T) {
	eachServer(t, func(e *env) {
		err := e.Do(bg, "a", func(_ context.Context, tx *gorm.DB) error {
			wantNil(e.t, tx.Find(&[]Order{}).Error) // the snapshot
			wantNil(e.t, e.open().Create([]Order{{No: "1"}, {No: "2"}}).Error)
			return tx.Create([]Order{{No: "1"}, {No: "2"}}).Error
		}, guard.Protects(&Order{No: "1"}, &Order{No: "3"}), guard.Also("b", &Order{No: "2"}))
		wantIs(e.t, err, guard.ErrIntercepted)
		e.wantEvent(notify.VerdictOverlap, notify.OutcomeRefused, "b")
	})
}

// TestRepeatOfRowsOfTwoKeys: a statement that met a row of one key, and not that of
// another, is a repeat.
func TestRepeatOfRowsOfTwoKeys(t *testing.T) {
	for _, there := range []string{"1", "2"} {
		each(t, func(e *env) {
			e.create(&Order{No: there})
			err := e.Do(bg, "a", func(_ context.Context, tx *gorm.DB) error {
				return tx.Create([]Order{{No: "1"}, {No: "2"}}).Error
			}, guard.Protects(&Order{No: "1"}), guard.Also("b", &Order{No: "2"}))
			wantIs(e.t, err, guard.ErrDuplicate)
			e.wantNoEvent()
		})
	}
}

// TestOutageCountsOperations: not their keys, and none that never ran.
func TestOutageCountsOperations(t *testing.T) {
	each(t, func(e *env) {
		e.twoAccounts()
		g, engine := e.dbOnly(guard.Config{})
		peer := e.Peer(e.t, e.db)
		wantNil(e.t, move(bg, g, 1, 2))
		wantNil(e.t, peer.Do(bg, "b", func(context.Context, *gorm.DB) error {
			wantIs(e.t, g.Do(bg, "a", nop, guard.Also("b")), guard.ErrBusy)
			return nil
		}))
		wantMetrics(e.t, g, map[string]float64{"without_lock_total": 1})
		engine.down[0].Store(false)
		testwait.Until(e.t, "the end of the outage is reported", func() bool { return len(e.Events.All()) == 2 })
		e.wantDegraded(1, notify.OutcomeCommitted, 1)
	})
}

// TestWaitWithoutAPlace: an operation that waits for one key keeps no other from going
// on without a lock.
func TestWaitWithoutAPlace(t *testing.T) {
	eachServer(t, func(e *env) {
		g, engine := e.dbOnly(guard.Config{DBOnlyLimit: 1})
		waiting := make(chan error, 1)
		wantNil(e.t, e.Do(bg, "b", func(context.Context, *gorm.DB) error {
			before := engine.refused.Load()
			go func() { waiting <- g.Do(bg, "a", nop, guard.Also("b"), guard.Wait(time.Minute)) }()
			testwait.Until(e.t, "the second key is waited for", func() bool { return engine.refused.Load() > before })
			return g.Do(bg, "a2", nop)
		}))
		wantNil(e.t, <-waiting)
		wantNil(e.t, g.Do(bg, "a", nop))
	})
}

// TestLockIsBackWhileWaiting: an operation that has waited for one key until the lock on
// another can be acquired again acquires it.
func TestLockIsBackWhileWaiting(t *testing.T) {
	each(t, func(e *env) {
		g, engine := e.dbOnly(guard.Config{DBOnlyLimit: 1})
		waiting := make(chan error, 1)
		wantNil(e.t, e.Do(bg, "b", func(context.Context, *gorm.DB) error {
			before := engine.refused.Load()
			go func() {
				waiting <- g.Do(bg, "a", func(context.Context, *gorm.DB) error {
					for _, key := range []string{"a", "b"} {
						wantIs(e.t, e.Do(bg, key, nop), guard.ErrBusy)
					}
					return nil
				}, guard.Also("b"), guard.Wait(time.Minute))
			}()
			testwait.Until(e.t, "the second key is waited for", func() bool { return engine.refused.Load() > before })
			engine.down[0].Store(false)
			e.awaitEnd(g)
			return nil
		}))
		wantNil(e.t, <-waiting)
		e.wantFree("a")
		e.wantFree("b")
		testwait.Until(e.t, "the end of the outage is reported", func() bool { return len(e.Events.All()) == 2 })
		e.wantDegraded(1, notify.OutcomeCommitted, 0)
	})
}

// leaving is an engine that does not return from what it is told to leave.
type leaving struct {
	lockengine.Engine
	acquire, release atomic.Pointer[string] // the key
	leave            func()
}

func (l *leaving) Acquire(ctx context.Context, r lockengine.Request, ttl time.Duration) (lockengine.Grant, error) {
	g, err := l.Engine.Acquire(ctx, r, ttl)
	if key := l.acquire.Swap(nil); key != nil {
		if *key == r.Key {
			l.leave()
		}
		l.acquire.CompareAndSwap(nil, key)
	}
	return g, err
}

func (l *leaving) Release(ctx context.Context, r lockengine.Request) error {
	if key := l.release.Load(); key != nil && *key == r.Key && l.release.CompareAndSwap(key, nil) {
		l.leave()
	}
	return l.Engine.Release(ctx, r)
}

// TestEngineThatLeavesASecondKey: an engine that panics, or ends the goroutine, over one
// of several keys does so to its caller, who may recover, and no key stays locked.
func TestEngineThatLeavesASecondKey(t *testing.T) {
	each(t, func(e *env) {
		for how, leave := range map[string]func(){"panic": func() { panic("a hook") }, "Goexit": runtime.Goexit} {
			for _, what := range []string{"Acquire", "Release"} {
				for _, key := range []string{"a", "b"} {
					e.t.Run(what+" of "+key+", "+how, func(t *testing.T) {
						engine := &leaving{Engine: e.Engine(), leave: leave}
						if what == "Acquire" {
							engine.acquire.Store(&key)
						} else {
							engine.release.Store(&key)
						}
						e := &env{Guard: e.Guard, t: t, db: e.db, open: e.open}
						g := e.guardOn(engine, guard.Config{})
						returned := false
						var caller sync.WaitGroup
						caller.Go(func() {
							defer func() { _ = recover() }()
							_ = g.Do(bg, "a", nop, guard.Also("b"))
							returned = true
						})
						caller.Wait()
						if returned {
							t.Error("Do returned")
						}
						wantNil(t, e.Do(bg, "a", nop, guard.Also("b"), guard.Wait(10*time.Second)))
					})
				}
			}
		}
	})
}

// silentOn is an engine that does not answer acquires of a key.
type silentOn struct {
	lockengine.Engine
	key   string
	asked chan struct{} // closed when the key is asked for
	once  sync.Once
}

func (s *silentOn) Acquire(ctx context.Context, r lockengine.Request, ttl time.Duration) (lockengine.Grant, error) {
	if r.Key == s.key {
		s.once.Do(func() { close(s.asked) })
		<-ctx.Done()
		return lockengine.Grant{}, lockengine.ErrNoAnswer
	}
	return s.Engine.Acquire(ctx, r, ttl)
}

// TestLostBeforeAnAnswer: a lock that is lost while another is asked for is one failure,
// and does not make the other unavailable.
func TestLostBeforeAnAnswer(t *testing.T) {
	for name, policy := range map[string]guard.Policy{"FailClosed": guard.FailClosed, "DBOnly": guard.DBOnly} {
		t.Run(name, func(t *testing.T) {
			each(t, func(e *env) {
				engine := &silentOn{Engine: e.Engine(), key: "b", asked: make(chan struct{})}
				locker, err := lock.New(engine, lock.Config{TTL: 600 * time.Millisecond})
				wantNil(e.t, err)
				g, err := guard.New(e.db, locker, guard.Config{Service: "s", Publisher: &e.Events, OnUnavailable: policy})
				wantNil(e.t, err)
				ended := make(chan error, 1)
				go func() { ended <- g.Do(bg, "a", nop, guard.Also("b"), guard.Wait(time.Hour)) }()
				<-engine.asked
				e.Forget("a")
				wantIs(e.t, <-ended, guard.ErrLost)
				wantNil(e.t, g.Close(bg))
				wantNil(e.t, locker.Close(bg))
				e.wantEvent(notify.VerdictLost, notify.OutcomeRolledBack, "a")
			})
		})
	}
}

// unheard is an engine that does not say who holds a key.
type unheard struct{ lockengine.Engine }

func (unheard) Inspect(context.Context, string) (lockengine.Holder, error) {
	return lockengine.Holder{}, lockengine.ErrNoAnswer
}

// TestUnverifiedRepeatOfASecondKey: the release of the lock on its own key judges it,
// whatever else was lost.
func TestUnverifiedRepeatOfASecondKey(t *testing.T) {
	each(t, func(e *env) {
		e.create(&Order{No: "2"})
		g := e.guardOn(unheard{e.Engine()}, guard.Config{})
		err := g.Do(bg, "order:1", func(ctx context.Context, tx *gorm.DB) error {
			e.Forget("order:1")
			e.Forget("order:2")
			return tx.Create(&Order{No: "2"}).Error
		}, guard.Also("order:2", &Order{No: "2"}))
		wantIs(e.t, err, guard.ErrIntercepted)
		e.wantEvent(notify.VerdictLost, notify.OutcomeRefused, "order:2")
	})
}

// TestLostBesideOneGivenUp: the end of the Locker hides no loss of another lock.
func TestLostBesideOneGivenUp(t *testing.T) {
	each(t, func(e *env) {
		locker, err := lock.New(e.Engine(), lock.Config{TTL: 300 * time.Millisecond})
		wantNil(e.t, err)
		g, err := guard.New(e.db, locker, guard.Config{Service: "s", Publisher: &e.Events})
		wantNil(e.t, err)
		err = g.Do(bg, "a", func(ctx context.Context, _ *gorm.DB) error {
			e.Forget("b")
			<-ctx.Done()
			ended, cancel := context.WithCancel(bg)
			cancel()
			_ = locker.Close(ended)
			return nil
		}, guard.Also("b"))
		wantIs(e.t, err, guard.ErrLost)
		if errors.Is(err, lock.ErrClosed) {
			e.t.Errorf("error is %v, want the loss", err)
		}
		wantNil(e.t, g.Close(bg))
		e.wantEvent(notify.VerdictLost, notify.OutcomeRolledBack, "b")
	})
}

// TestRefusedNestedDoNamesNothing: a Do inside an operation that asks for a key which is
// not held leaves nothing behind.
func TestRefusedNestedDoNamesNothing(t *testing.T) {
	each(t, func(e *env) {
		e.create(&Order{No: "2"})
		err := e.Do(bg, "a", func(ctx context.Context, tx *gorm.DB) error {
			wantIs(e.t, e.Do(ctx, "a", nop, guard.Protects(&Order{No: "2"}), guard.Also("b")), guard.ErrNested)
			return tx.Create(&Order{No: "2"}).Error
		})
		wantIs(e.t, err, gorm.ErrDuplicatedKey)
		if errors.Is(err, guard.ErrDuplicate) {
			e.t.Errorf("error is %v, but the row was not named", err)
		}
	})
}

// together is an engine that says who holds a key when so many were asked for.
type together struct {
	lockengine.Engine
	keys  int64
	asked atomic.Int64
	all   chan struct{}
}

func (s *together) Inspect(ctx context.Context, key string) (lockengine.Holder, error) {
	if s.asked.Add(1) == s.keys {
		close(s.all)
	}
	select {
	case <-s.all:
		return s.Engine.Inspect(ctx, key)
	case <-ctx.Done():
		return lockengine.Holder{}, lockengine.ErrNoAnswer
	}
}

// TestHoldersAreAskedForAtOnce: an engine that does not answer holds up an operation with
// several keys no longer than one with one.
func TestHoldersAreAskedForAtOnce(t *testing.T) {
	e, k := linked(t)
	e.create(&Label{Code: "z"}) // warms the catalogue
	engine := &together{Engine: e.Engine(), keys: 3, all: make(chan struct{})}
	locker, err := lock.New(engine, lock.Config{})
	wantNil(t, err)
	g, err := guard.New(e.open(), locker, guard.Config{Service: "s", Publisher: &e.Events})
	wantNil(t, err)
	err = g.Do(bg, "a", func(ctx context.Context, tx *gorm.DB) error {
		if err := guard.Insert(&Label{Code: "a"}).Run(ctx, tx); err != nil {
			return err
		}
		k.After.Store(true)
		e.Forget("b")
		return nil
	}, guard.Also("b"), guard.Also("c"))
	k.After.Store(false)
	wantIs(t, err, guard.ErrUnknown)
	e.wantEvent(notify.VerdictLost, notify.OutcomeUnknown, "b")
	wantNil(t, g.Close(bg))
	ended, cancel := context.WithCancel(bg)
	cancel()
	_ = locker.Close(ended)
}

package promises_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/lock/memlock"
	"github.com/belaygo/belay/notify"
)

func put(s *Stock) error {
	s.Left++
	return nil
}

func accountKey(id int64) string { return fmt.Sprintf("account:%d", id) }

// also is the option for the account of another key.
func also(id int64) guard.Option { return guard.Also(accountKey(id), &Stock{ID: id}) }

// move moves one from an account to another.
func move(ctx context.Context, g interface {
	Apply(context.Context, string, guard.Change, ...guard.Option) error
}, from, to int64, opts ...guard.Option) error {
	return g.Apply(ctx, accountKey(from), guard.All(
		guard.Update(&Stock{ID: from}, take),
		guard.Update(&Stock{ID: to}, put),
	), append(opts, also(to))...)
}

func (e *env) twoAccounts() { e.create(&Stock{ID: 1, Left: 9}, &Stock{ID: 2, Left: 9}) }

func (e *env) wantLeft(first, second int) {
	e.t.Helper()
	if a, b := e.stock(1).Left, e.stock(2).Left; a != first || b != second {
		e.t.Errorf("the accounts have %d and %d, want %d and %d", a, b, first, second)
	}
}

func TestTransfer(t *testing.T) {
	each(t, func(e *env) {
		e.twoAccounts()
		wantNil(e.t, move(bg, e, 1, 2))
		e.wantLeft(8, 10)
		wantNil(e.t, move(bg, e, 2, 1))
		e.wantLeft(9, 9)
		wantIs(e.t, e.Apply(bg, accountKey(1), guard.All(
			guard.Update(&Stock{ID: 1}, take),
			guard.Update(&Stock{ID: 2}, func(*Stock) error { return errSoldOut }),
		), also(2)), errSoldOut)
		e.wantLeft(9, 9)
		e.wantFree(accountKey(1))
		e.wantFree(accountKey(2))
		e.wantNoEvent()
	})
}

// TestTransfersBetweenAll: transfers in all directions at once neither deadlock nor lose
// anything, and no lock failure is reported.
func TestTransfersBetweenAll(t *testing.T) {
	const accounts, callers, each, instances = 4, 200, 3, 3
	eachServer(t, func(e *env) {
		for id := range int64(accounts) {
			e.create(&Stock{ID: id + 1, Left: 100})
		}
		services := []*guard.Guard{e.Guard.Guard}
		for len(services) < instances {
			services = append(services, e.Peer(e.t, e.open()))
		}
		var all sync.WaitGroup
		for i := range callers {
			all.Go(func() {
				for range each {
					from, to := rand.Int64N(accounts)+1, rand.Int64N(accounts)+1
					if from == to {
						continue
					}
					if err := move(bg, services[i%instances], from, to, guard.Wait(time.Minute)); err != nil {
						e.t.Errorf("transfer from %d to %d: %v", from, to, err)
					}
				}
			})
		}
		all.Wait()
		sum := 0
		for id := range int64(accounts) {
			sum += e.stock(id + 1).Left
		}
		if sum != accounts*100 {
			e.t.Errorf("the accounts have %d, want %d", sum, accounts*100)
		}
		e.wantNoEvent()
	})
}

// orderly notes the keys in the order in which they are acquired.
type orderly struct {
	lockengine.Engine
	mu   sync.Mutex
	keys []string
}

func (o *orderly) Acquire(ctx context.Context, r lockengine.Request, ttl time.Duration) (lockengine.Grant, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.keys = append(o.keys, r.Key)
	return o.Engine.Acquire(ctx, r, ttl)
}

func (e *env) guardOn(engine lockengine.Engine, cfg guard.Config) *guard.Guard {
	e.t.Helper()
	locker, err := lock.New(engine, lock.Config{})
	wantNil(e.t, err)
	cfg.Service, cfg.Publisher = "several", &e.Events
	g, err := guard.New(e.db, locker, cfg)
	wantNil(e.t, err)
	e.t.Cleanup(func() {
		if err := errors.Join(g.Close(bg), locker.Close(bg)); err != nil {
			e.t.Error(err)
		}
	})
	return g
}

func nop(context.Context, *gorm.DB) error { return nil }

// TestKeysAreAcquiredInOneOrder: that of their bytes, each once, however they are given.
func TestKeysAreAcquiredInOneOrder(t *testing.T) {
	each(t, func(e *env) {
		engine := &orderly{Engine: memlock.New()}
		g := e.guardOn(engine, guard.Config{})
		keys := []string{"a", "a1", "b", "é"}
		for range 20 {
			rand.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
			engine.keys = nil
			var opts []guard.Option
			for _, key := range append(keys[1:], keys[1], keys[0]) {
				opts = append(opts, guard.Also(key))
			}
			wantNil(e.t, g.Do(bg, keys[0], nop, opts...))
			if want := []string{"a", "a1", "b", "é"}; !slices.Equal(engine.keys, want) {
				e.t.Fatalf("acquired %q, want %q", engine.keys, want)
			}
		}
	})
}

// TestBusyKeyGivesAllBack: an operation gets all keys or none, and learns which is busy.
func TestBusyKeyGivesAllBack(t *testing.T) {
	each(t, func(e *env) {
		e.twoAccounts()
		peer := e.Peer(e.t, e.db)
		for _, busy := range []int64{1, 2} {
			for name, opts := range map[string][]guard.Option{"at once": nil, "after a wait": {guard.Wait(20 * time.Millisecond)}} {
				wantNil(e.t, peer.Do(bg, accountKey(busy), func(context.Context, *gorm.DB) error {
					err := move(bg, e, 1, 2, opts...)
					wantIs(e.t, err, guard.ErrBusy)
					var held *lockengine.HeldError
					if !errors.As(err, &held) || held.Key != accountKey(busy) {
						e.t.Errorf("%s: error is %v, want one that names key %d", name, err, busy)
					}
					return nil
				}))
				e.wantFree(accountKey(1))
				e.wantFree(accountKey(2))
			}
		}
		e.wantLeft(9, 9)
		e.wantNoEvent()
	})
}

// TestConflictOfASecondKey: a conflict is judged by the lock on the key of its row.
func TestConflictOfASecondKey(t *testing.T) {
	for _, lost := range []int64{1, 2} {
		t.Run(accountKey(lost), func(t *testing.T) {
			eachServer(t, func(e *env) {
				e.twoAccounts()
				err := e.Do(bg, accountKey(2), func(ctx context.Context, tx *gorm.DB) error {
					if err := guard.Update(&Stock{ID: 3 - lost}, take).Run(ctx, tx); err != nil {
						return err
					}
					return guard.Update(&Stock{ID: lost}, func(s *Stock) error {
						e.loseTo(accountKey(lost), guard.Update(&Stock{ID: lost}, take).Run)
						return put(s)
					}).Run(ctx, tx)
				}, guard.Protects(&Stock{ID: 2}), also(1))
				wantIs(e.t, err, guard.ErrIntercepted)
				ev := e.wantEvent(notify.VerdictOverlap, notify.OutcomeRefused, accountKey(lost))
				if want := []string{accountKey(1), accountKey(2)}; !slices.Equal(ev.Keys, want) {
					e.t.Errorf("the event names the keys %q, want %q", ev.Keys, want)
				}
				if got := e.stock(lost).Left; got != 8 {
					e.t.Errorf("left %d, want 8", got)
				}
				if got := e.stock(3 - lost).Left; got != 9 {
					e.t.Errorf("left %d in the other account, want 9", got)
				}
			})
		})
	}
}

// TestOverlapThoughTheLockIsHeld: each row has a key of its own, so a change under it is
// an overlap even if the lock is not found lost.
func TestOverlapThoughTheLockIsHeld(t *testing.T) {
	eachServer(t, func(e *env) {
		e.twoAccounts()
		err := e.Apply(bg, accountKey(1), guard.All(
			guard.Update(&Stock{ID: 1}, take),
			guard.Update(&Stock{ID: 2}, func(s *Stock) error {
				wantNil(e.t, e.open().Model(&Stock{ID: 2, Version: 1}).Updates(map[string]any{"left": 5, "version": 2}).Error)
				return put(s)
			}),
		), also(2))
		wantIs(e.t, err, guard.ErrIntercepted)
		if ev := e.wantEvent(notify.VerdictOverlap, notify.OutcomeRefused, accountKey(2)); ev.HolderAtConflict != notify.HolderSelf {
			e.t.Errorf("holder at conflict is %q", ev.HolderAtConflict)
		}
	})
}

// TestConflictOnAnUnnamedRow: a row that no Also names belongs to the key of Do.
func TestConflictOnAnUnnamedRow(t *testing.T) {
	eachServer(t, func(e *env) {
		e.twoAccounts()
		err := e.Apply(bg, accountKey(1), guard.Update(&Stock{ID: 1}, func(s *Stock) error {
			e.loseTo(accountKey(1), guard.Update(&Stock{ID: 1}, take).Run)
			return take(s)
		}), guard.Also("audit"))
		wantIs(e.t, err, guard.ErrIntercepted)
		e.wantEvent(notify.VerdictOverlap, notify.OutcomeRefused, accountKey(1))
	})
}

// TestRepeatUnderSeveralKeys: the request's row came first, under a lock that is held.
func TestRepeatUnderSeveralKeys(t *testing.T) {
	each(t, func(e *env) {
		e.twoAccounts()
		again := func() error {
			return e.Apply(bg, "request:7", guard.All(
				guard.Insert(&Order{No: "7"}),
				guard.Update(&Stock{ID: 1}, take),
				guard.Update(&Stock{ID: 2}, put),
			), also(1), also(2))
		}
		wantNil(e.t, again())
		wantIs(e.t, again(), guard.ErrDuplicate)
		e.wantLeft(8, 10)
		e.wantNoEvent()
	})
}

// TestAnyLostLockEndsTheOperation: its context ends, nothing is committed, and the event
// names the key.
func TestAnyLostLockEndsTheOperation(t *testing.T) {
	for _, lost := range []int64{1, 2} {
		t.Run(accountKey(lost), func(t *testing.T) {
			each(t, func(e *env) {
				e.twoAccounts()
				err := e.shortGuard().Do(bg, accountKey(1), func(ctx context.Context, tx *gorm.DB) error {
					wantNil(e.t, guard.Update(&Stock{ID: 1}, take).Run(ctx, tx))
					e.Forget(accountKey(lost))
					<-ctx.Done()
					wantIs(e.t, context.Cause(ctx), guard.ErrLost)
					return nil
				}, also(2))
				wantIs(e.t, err, guard.ErrLost)
				ev := e.wantEvent(notify.VerdictLost, notify.OutcomeRolledBack, accountKey(lost))
				if ev.Loss != notify.LossGone {
					e.t.Errorf("loss is %q", ev.Loss)
				}
				e.wantLeft(9, 9)
				e.wantFree(accountKey(1))
				e.wantFree(accountKey(2))
			})
		})
	}
}

// TestLostAtTheRelease: a lock that is found gone after the commit is reported, and only
// once if both are.
func TestLostAtTheRelease(t *testing.T) {
	each(t, func(e *env) {
		for name, lost := range map[string][]int64{"the first": {1}, "the second": {2}, "both": {1, 2}} {
			e.onSameDatabase(name, func(e *env) {
				e.twoAccounts()
				wantNil(e.t, e.Apply(bg, accountKey(1), guard.All(
					guard.Update(&Stock{ID: 1}, take),
					guard.Update(&Stock{ID: 2}, func(s *Stock) error {
						for _, id := range lost {
							e.Forget(accountKey(id))
						}
						return put(s)
					}),
				), also(2)))
				e.wantEvent(notify.VerdictLost, notify.OutcomeCommitted, accountKey(lost[0]))
				e.wantLeft(8, 10)
			})
		}
	})
}

// TestLossOfAnInheritedLock: an operation that loses two locks reports the one that another
// caller has handed on to it, which nobody else reports for that caller.
func TestLossOfAnInheritedLock(t *testing.T) {
	each(t, func(e *env) {
		loseBoth := func(first, second string) error {
			return e.Do(bg, first, func(context.Context, *gorm.DB) error {
				e.Forget(first)
				e.Forget(second)
				return nil
			}, guard.Also(second), guard.Wait(time.Minute))
		}
		for n := range 1000 { // until the lock is handed over: the other caller may be late
			first, second, ended := fmt.Sprint("a:", n), fmt.Sprint("b:", n), make(chan error)
			wantNil(e.t, e.Do(bg, second, func(context.Context, *gorm.DB) error {
				go func() { ended <- loseBoth(first, second) }()
				testwait.Until(e.t, "the first key is held", func() bool {
					now, err := e.Engine().Inspect(bg, first)
					return err == nil && now.Owner != ""
				})
				return nil
			}))
			wantNil(e.t, <-ended)
			events := e.Events.All()
			if len(events) != n+1 {
				e.t.Fatalf("%d events, want %d", len(events), n+1)
			}
			if ev := events[n]; ev.Key == second {
				if ev.Verdict != notify.VerdictLost || ev.FirstToken == 0 {
					e.t.Errorf("the event is %+v", ev)
				}
				return
			}
		}
		e.t.Error("no event names the lock that was handed over")
	})
}

// TestLostWhileWaiting: an operation that loses one lock while it waits for another does
// not wait on.
func TestLostWhileWaiting(t *testing.T) {
	each(t, func(e *env) {
		peer := e.Peer(e.t, e.db)
		g := e.shortGuard()
		wantNil(e.t, peer.Do(bg, accountKey(2), func(ctx context.Context, _ *gorm.DB) error {
			ended := make(chan error)
			go func() { ended <- g.Do(bg, accountKey(1), nop, guard.Also(accountKey(2)), guard.Wait(time.Hour)) }()
			testwait.Until(e.t, "the first key is held", func() bool { return e.Forget(accountKey(1)) })
			wantIs(e.t, <-ended, guard.ErrLost)
			return nil
		}))
		e.wantEvent(notify.VerdictLost, notify.OutcomeRolledBack, accountKey(1))
		e.wantFree(accountKey(1))
	})
}

// TestUnknownCommitKeepsAllKeys: none of them is free before its ttl has passed.
func TestUnknownCommitKeepsAllKeys(t *testing.T) {
	e, k := linked(t)
	e.create(&Label{Code: "z"}) // warms the catalogue
	err := e.Do(bg, accountKey(1), func(ctx context.Context, tx *gorm.DB) error {
		if err := guard.Insert(&Label{Code: "a"}).Run(ctx, tx); err != nil {
			return err
		}
		k.After.Store(true)
		return nil
	}, guard.Also(accountKey(2)))
	k.After.Store(false)
	wantIs(t, err, guard.ErrUnknown)
	peer := e.Peer(t, e.db)
	for id := range int64(2) {
		wantIs(t, peer.Do(bg, accountKey(id+1), nop), guard.ErrBusy)
	}
	e.wantEvent(notify.VerdictUnknownCommit, notify.OutcomeUnknown, accountKey(1))
}

// TestOneKeyWithoutItsLock: while the node of one key is away, the lock on the other is
// acquired, and the transaction must be one that the database alone can guard.
func TestOneKeyWithoutItsLock(t *testing.T) {
	each(t, func(e *env) {
		e.twoAccounts()
		g, engine := e.dbOnly(guard.Config{DBOnlyLimit: 1}) // two keys without a lock take one place
		b, peer := guard.Also("b:2", &Stock{ID: 2}), e.Peer(e.t, e.db)
		change := guard.All(guard.Update(&Stock{ID: 1}, take), guard.Update(&Stock{ID: 2}, put))
		wantNil(e.t, g.Apply(bg, "account:1", change, b))
		wantNil(e.t, g.Do(bg, "account:1", func(ctx context.Context, _ *gorm.DB) error {
			wantIs(e.t, peer.Do(bg, "b:2", nop), guard.ErrBusy)
			return nil
		}, b))
		wantIs(e.t, g.Do(bg, "account:1", func(_ context.Context, tx *gorm.DB) error {
			return tx.Exec("UPDATE stocks SET version = version + 1 WHERE id = 2").Error
		}, b), guard.ErrUnavailable)
		e.wantDegraded(0, notify.OutcomeUnknown, 1)
		engine.down[1].Store(true)
		wantNil(e.t, g.Apply(bg, "account:1", change, b))
		e.wantLeft(7, 11)
	})
}

// TestNestedDoOfASecondKey: it is a savepoint, and its rows are judged by its key.
func TestNestedDoOfASecondKey(t *testing.T) {
	eachServer(t, func(e *env) {
		e.twoAccounts()
		err := e.Do(bg, accountKey(1), func(ctx context.Context, tx *gorm.DB) error {
			wantNil(e.t, guard.Update(&Stock{ID: 1}, take).Run(ctx, tx))
			err := e.Do(ctx, accountKey(3), nop)
			wantIs(e.t, err, guard.ErrNested)
			if !strings.Contains(err.Error(), "Also") {
				e.t.Errorf("the error does not name the way out: %v", err)
			}
			wantIs(e.t, e.Do(ctx, accountKey(2), nop, also(3)), guard.ErrNested)
			return e.Apply(ctx, accountKey(2), guard.Update(&Stock{ID: 2}, func(s *Stock) error {
				e.loseTo(accountKey(2), guard.Update(&Stock{ID: 2}, take).Run)
				return put(s)
			}))
		}, guard.Also(accountKey(2)))
		wantIs(e.t, err, guard.ErrIntercepted)
		verdict := notify.VerdictOverlap
		if e.db.Name() == "postgres" { // which has written a row of the table before this one was named
			verdict = notify.VerdictLost
		}
		e.wantEvent(verdict, notify.OutcomeRefused, accountKey(2))
	})
}

func TestSeveralKeysMisuse(t *testing.T) {
	each(t, func(e *env) {
		many := make([]guard.Option, 16)
		for i := range many {
			many[i] = guard.Also(fmt.Sprint("k", i))
		}
		for name, tt := range map[string]struct {
			opts []guard.Option
			want string
		}{
			"an empty key":          {[]guard.Option{guard.Also("")}, "empty"},
			"too many":              {many, "17 keys"},
			"Remember":              {[]guard.Option{guard.Also("b"), guard.Remember(time.Minute)}, "Remember"},
			"a nil row":             {[]guard.Option{guard.Also("b", nil)}, "nil"},
			"a nil row of a type":   {[]guard.Option{guard.Also("b", (*Stock)(nil))}, "nil"},
			"a row without a name":  {[]guard.Option{guard.Also("b", &Stock{Left: 3})}, "no unique index"},
			"a key with a brace":    {[]guard.Option{guard.Also("b{1")}, "brace"},
			"the row is not struct": {[]guard.Option{guard.Also("b", 7)}, ""},
		} {
			err := e.Do(bg, "a", func(context.Context, *gorm.DB) error {
				e.t.Errorf("%s: the operation ran", name)
				return nil
			}, tt.opts...)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				e.t.Errorf("%s: error is %v, want %q", name, err, tt.want)
			}
			e.wantFree("a")
		}
		wantNil(e.t, e.Do(bg, "a", nop, many[:15]...))
		wantNil(e.t, e.Do(bg, "a", nop, guard.Also("a"), guard.Also("a")))
		wantNil(e.t, e.Do(bg, "a", nop, guard.Protects(&Stock{ID: 1}), guard.Also("b", &Stock{ID: 1}, &Stock{ID: 1})))
		e.wantNoEvent()
	})
}

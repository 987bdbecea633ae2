package promises_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/lockengine"
)

var bg = context.Background()

func TestInsertOnce(t *testing.T) {
	each(t, func(e *env) {
		first := &Order{No: "a", Amount: 1}
		wantNil(e.t, e.Apply(bg, "order:a", guard.Insert(first)))
		if first.ID == 0 {
			e.t.Error("the inserted row has no ID in memory")
		}
		again := &Order{No: "a", Amount: 2}
		err := e.Apply(bg, "order:a", guard.Insert(again))
		wantIs(e.t, err, guard.ErrDuplicate)
		wantIs(e.t, err, gorm.ErrDuplicatedKey)
		if *again != (Order{No: "a", Amount: 2}) {
			e.t.Errorf("after a failure the row is %+v, want it as it was", *again)
		}
		if n := e.count(&Order{}); n != 1 {
			e.t.Errorf("%d rows, want 1", n)
		}
		e.wantNoEvent()
	})
}

func TestInsertTranslated(t *testing.T) {
	for name, cfg := range map[string]*gorm.Config{
		"translate":  {TranslateError: true},
		"prepare":    {PrepareStmt: true},
		"autocommit": {SkipDefaultTransaction: true},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(e *env) {
				wantNil(e.t, e.Apply(bg, "order:a", guard.Insert(&Order{No: "a"})))
				wantIs(e.t, e.Apply(bg, "order:a", guard.Insert(&Order{No: "a"})), guard.ErrDuplicate)
				e.create(&Stock{ID: 1, Left: 5})
				wantNil(e.t, e.Apply(bg, "sku:1", guard.Update(&Stock{ID: 1}, take)))
				if s := e.stock(1); s.Left != 4 || s.Version != 2 {
					e.t.Errorf("stock is %+v", s)
				}
				e.wantNoEvent()
			}, cfg)
		})
	}
}

func take(s *Stock) error {
	if s.Left == 0 {
		return errSoldOut
	}
	s.Left--
	return nil
}

var errSoldOut = errors.New("sold out")

func TestUpdate(t *testing.T) {
	each(t, func(e *env) {
		e.create(&Stock{ID: 1, Left: 1})
		s := &Stock{ID: 1}
		wantNil(e.t, e.Apply(bg, "sku:1", guard.Update(s, take)))
		if want := (Stock{ID: 1, Left: 0, Version: 2}); *s != want || e.stock(1) != want {
			e.t.Errorf("in memory %+v, in the database %+v, want %+v", *s, e.stock(1), want)
		}
		s = &Stock{ID: 1}
		wantIs(e.t, e.Apply(bg, "sku:1", guard.Update(s, take)), errSoldOut)
		if *s != (Stock{ID: 1}) {
			e.t.Errorf("after a failure the row is %+v, want it as it was", *s)
		}
		wantIs(e.t, e.Apply(bg, "sku:2", guard.Update(&Stock{ID: 2}, take)), gorm.ErrRecordNotFound)
		e.wantNoEvent()
	})
}

func TestUpdateWithOldVersion(t *testing.T) {
	each(t, func(e *env) {
		e.create(&Stock{ID: 1, Left: 9})
		wantNil(e.t, e.Apply(bg, "sku:1", guard.Update(&Stock{ID: 1, Version: 1}, take)))
		err := e.Apply(bg, "sku:1", guard.Update(&Stock{ID: 1, Version: 1}, take))
		wantIs(e.t, err, guard.ErrStale)
		var c *dbguard.ConflictError
		if !errors.As(err, &c) || c.Evidence.Version != 1 || c.Evidence.FoundVersion != 2 {
			e.t.Errorf("conflict is %+v, want version 1 expected and 2 found", c)
		}
		if s := e.stock(1); s.Left != 8 {
			e.t.Errorf("left %d, want 8", s.Left)
		}
		e.wantNoEvent()
	})
}

func TestManySellers(t *testing.T) {
	each(t, func(e *env) {
		const sellers, items = 40, 10
		e.create(&Stock{ID: 1, Left: items})
		peer := e.Peer(e.t, e.open())
		var wg sync.WaitGroup
		var mu sync.Mutex
		outcome := map[error]int{}
		for i := range sellers {
			g := e.Guard.Guard
			if i%2 == 0 {
				g = peer
			}
			wg.Go(func() {
				err := g.Apply(bg, "sku:1", guard.Update(&Stock{ID: 1}, take), guard.Wait(time.Minute))
				mu.Lock()
				defer mu.Unlock()
				outcome[err]++
			})
		}
		wg.Wait()
		if outcome[nil] != items || outcome[errSoldOut] != sellers-items {
			e.t.Errorf("outcome is %v, want %d sold", outcome, items)
		}
		e.wantNoEvent()
	})
}

func TestOneTransaction(t *testing.T) {
	each(t, func(e *env) {
		e.create(&Stock{ID: 7, Left: 1})
		sell := func(no string) error {
			return e.Do(bg, "sku:7", func(ctx context.Context, tx *gorm.DB) error {
				if err := tx.Create(&Order{No: no}).Error; err != nil {
					return err
				}
				return guard.Update(&Stock{ID: 7}, take).Run(ctx, tx)
			}, guard.Protects(&Order{No: no}, &Stock{ID: 7}))
		}
		wantNil(e.t, sell("a"))
		wantIs(e.t, sell("a"), guard.ErrDuplicate)
		wantIs(e.t, sell("b"), errSoldOut)
		if n := e.count(&Order{}); n != 1 {
			e.t.Errorf("%d orders, want 1", n)
		}
		e.wantNoEvent()
	})
}

func TestBusy(t *testing.T) {
	each(t, func(e *env) {
		peer := e.Peer(e.t, e.db)
		err := e.Do(bg, "k", func(ctx context.Context, tx *gorm.DB) error {
			err := peer.Apply(bg, "k", guard.Insert(&Order{No: "a"}))
			wantIs(e.t, err, guard.ErrBusy)
			var held *lockengine.HeldError
			if !errors.As(err, &held) || held.Holder.Owner == "" || held.Holder.TTL <= 0 {
				e.t.Errorf("error is %v, want a holder and the time left", err)
			}

			err = peer.Apply(bg, "k", guard.Insert(&Order{No: "a"}), guard.Wait(20*time.Millisecond))
			wantIs(e.t, err, guard.ErrBusy)
			if errors.Is(err, context.DeadlineExceeded) {
				e.t.Errorf("error is %v, but the caller's context has not ended", err)
			}

			ended, cancel := context.WithTimeout(bg, 20*time.Millisecond)
			defer cancel()
			err = peer.Apply(ended, "k", guard.Insert(&Order{No: "a"}), guard.Wait(time.Minute))
			wantIs(e.t, err, guard.ErrBusy)
			wantIs(e.t, err, context.DeadlineExceeded)
			return nil
		})
		wantNil(e.t, err)
		e.wantNoEvent()
	})
}

func TestMisuse(t *testing.T) {
	each(t, func(e *env) {
		nop := func(context.Context, *gorm.DB) error { return nil }
		if err := e.Do(bg, "k", nil); err == nil {
			e.t.Error("Do without an operation returns nil")
		}
		wantIs(e.t, e.Do(bg, "a{b", nop), lock.ErrInvalidKey)
		if err := guard.Do(bg, "k", nop); err == nil {
			e.t.Error("Do without a default guard returns nil")
		}
		wantIs(e.t, e.Do(bg, "k", func(ctx context.Context, _ *gorm.DB) error {
			return e.Do(ctx, "other", nop)
		}), guard.ErrNested)
		wantIs(e.t, e.Do(bg, "k", nop, guard.Protects(&Order{Amount: 1})), dbguard.ErrUnprotectable)
		wantIs(e.t, e.Apply(bg, "k", guard.Insert(&Order{Amount: 1})), dbguard.ErrUnprotectable)
		mail := "m"
		wantIs(e.t, e.Apply(bg, "k", guard.Insert(&Order{No: "a", Email: &mail})), dbguard.ErrUnprotectable)
		wantNil(e.t, e.Apply(bg, "k", guard.Insert(&Order{No: "a", Email: &mail}), guard.Protects(&Order{No: "a"})))
		if err := e.Apply(bg, "k", guard.Update(&Order{ID: 1}, func(*Order) error { return nil })); err == nil {
			e.t.Error("Update of a model without a version succeeded")
		}
		if err := guard.Insert(&Order{No: "b"}).Run(bg, e.db); err == nil {
			e.t.Error("Insert outside Do succeeded")
		}

		guard.SetDefault(e.Guard.Guard)
		defer guard.SetDefault(nil)
		wantNil(e.t, guard.Do(bg, "k", nop))

		wantNil(e.t, e.Ping(bg))
		wantNil(e.t, e.Close(bg))
		wantIs(e.t, e.Do(bg, "k", nop), guard.ErrClosed)
		e.wantNoEvent()
	})
}

func TestNew(t *testing.T) {
	e := onSQLite(t)
	if _, err := guard.New(nil, nil, guard.Config{Service: "s"}); err == nil {
		t.Error("New without a locker succeeded")
	}
	locker, err := lock.New(brokenEngine{}, lock.Config{TTL: time.Second})
	wantNil(t, err)
	defer locker.Close(bg)
	if _, err := guard.New(nil, locker, guard.Config{Service: "s"}); err == nil {
		t.Error("New without a db succeeded")
	}
	if _, err := guard.New(e.db, locker, guard.Config{}); err == nil {
		t.Error("New without a service succeeded")
	}
	g, err := guard.New(e.db, locker, guard.Config{Service: "s"})
	wantNil(t, err)
	defer g.Close(bg)
	err = g.Apply(bg, "k", guard.Insert(&Order{No: "a"}))
	wantIs(t, err, guard.ErrUnavailable)
	wantIs(t, err, errBroken)
	if n := e.count(&Order{}); n != 0 {
		t.Errorf("%d rows, want none without a lock", n)
	}
}

var errBroken = errors.New("broken")

// brokenEngine can't be asked.
type brokenEngine struct{}

func (brokenEngine) Acquire(context.Context, lockengine.Request, time.Duration) (lockengine.Grant, error) {
	return lockengine.Grant{}, errBroken
}
func (brokenEngine) Renew(_ context.Context, hs []lockengine.Request, _ time.Duration) []error {
	return make([]error, len(hs))
}
func (brokenEngine) Release(context.Context, lockengine.Request) error { return errBroken }
func (brokenEngine) Inspect(context.Context, string) (lockengine.Holder, error) {
	return lockengine.Holder{}, errBroken
}
func (brokenEngine) Close(context.Context) error { return nil }

func TestBusinessConflict(t *testing.T) {
	each(t, func(e *env) {
		mail := "m"
		e.create(&Order{No: "old", Email: &mail})
		err := e.Apply(bg, "order:a", guard.Insert(&Order{No: "a", Email: &mail}), guard.Protects(&Order{No: "a"}))
		var c *dbguard.ConflictError
		if !errors.As(err, &c) || errors.Is(err, guard.ErrDuplicate) {
			e.t.Fatalf("error is %v, want a bare conflict: another row has the e-mail", err)
		}
		err = e.Do(bg, "order:b", func(_ context.Context, tx *gorm.DB) error {
			return tx.Create(&Order{No: "old"}).Error
		})
		if !errors.As(err, &c) || errors.Is(err, guard.ErrDuplicate) || c.Evidence.Protected {
			e.t.Fatalf("error is %v, want a bare conflict: the key protects nothing", err)
		}
		e.wantNoEvent()
	})
}

func TestOwnRowTwice(t *testing.T) {
	each(t, func(e *env) {
		err := e.Do(bg, "order:a", func(_ context.Context, tx *gorm.DB) error {
			if err := tx.Create(&Order{No: "a"}).Error; err != nil {
				return err
			}
			return tx.Create(&Order{No: "a"}).Error
		}, guard.Protects(&Order{No: "a"}))
		var c *dbguard.ConflictError
		if !errors.As(err, &c) || errors.Is(err, guard.ErrDuplicate) {
			e.t.Fatalf("error is %v, want a bare conflict: the operation met its own row", err)
		}
		if n := e.count(&Order{}); n != 0 {
			e.t.Errorf("%d rows, want none", n)
		}
		e.wantNoEvent()
	})
}

func TestSwallowedRepeat(t *testing.T) {
	each(t, func(e *env) {
		e.create(&Order{No: "a"})
		errKnown := errors.New("known")
		insert := func(answer error) guard.Op {
			return func(_ context.Context, tx *gorm.DB) error {
				wantIs(e.t, tryCreate(tx, &Order{No: "a"}), gorm.ErrDuplicatedKey)
				if err := tx.Create(&Stock{Left: 1}).Error; err != nil {
					return err
				}
				return answer
			}
		}
		protect := guard.Protects(&Order{No: "a"})
		wantNil(e.t, e.Do(bg, "order:a", insert(nil), protect))
		if n := e.count(&Stock{}); n != 1 {
			e.t.Errorf("%d rows written beside a swallowed repeat, want 1", n)
		}
		wantIs(e.t, e.Do(bg, "order:a", insert(errKnown), protect), errKnown)
		if n := e.count(&Stock{}); n != 1 {
			e.t.Errorf("%d rows after a rollback, want 1", n)
		}
		e.wantNoEvent()
	})
}

// TestDeadlineBeforeTheLease: the caller's deadline ends the operation, not the
// lock, and what was begun is undone.
func TestDeadlineBeforeTheLease(t *testing.T) {
	each(t, func(e *env) {
		ctx, cancel := context.WithTimeout(bg, 300*time.Millisecond)
		defer cancel()
		err := e.Do(ctx, "k", func(ctx context.Context, tx *gorm.DB) error {
			if err := tx.Create(&Order{No: "a"}).Error; err != nil {
				return err
			}
			<-ctx.Done()
			return tx.Create(&Order{No: "b"}).Error
		})
		wantIs(e.t, err, context.DeadlineExceeded)
		if errors.Is(err, guard.ErrLost) {
			e.t.Errorf("error is %v, but the lock was not lost", err)
		}
		if n := e.count(&Order{}); n != 0 {
			e.t.Errorf("%d rows, want none", n)
		}
		e.wantFree("k")
		e.wantNoEvent()
	})
}

// TestDeadlineAtARowLock: it also ends the wait for another transaction's row.
// TestDeadlineAtARowLock: whatever the deadline cuts, a dial, a BEGIN or a statement, the caller
// hears that it was his.
func TestDeadlineAtARowLock(t *testing.T) {
	eachServer(t, func(e *env) {
		other := e.db.Begin()
		wantNil(e.t, other.Create(&Order{No: "a"}).Error)
		for i := range 120 {
			ctx, cancel := context.WithTimeout(bg, time.Duration(1+i)*250*time.Microsecond)
			err := e.Apply(ctx, "order:a", guard.Insert(&Order{No: "a"}))
			cancel()
			wantIs(e.t, err, context.DeadlineExceeded)
		}
		wantNil(e.t, other.Rollback().Error)
		wantNil(e.t, e.Apply(bg, "order:a", guard.Insert(&Order{No: "a"})))
		e.wantNoEvent()
	})
}

// TestCloseAfterTheContext: when there is nothing to wait for, it succeeds.
func TestCloseAfterTheContext(t *testing.T) {
	each(t, func(e *env) {
		ended, cancel := context.WithCancel(bg)
		cancel()
		for range 20 {
			wantNil(e.t, e.Close(ended))
		}
	})
}

func TestNestedTransaction(t *testing.T) {
	each(t, func(e *env) {
		wantNil(e.t, e.Do(bg, "k", func(_ context.Context, tx *gorm.DB) error {
			if err := tx.Create(&Order{No: "outer"}).Error; err != nil {
				return err
			}
			errUndo := errors.New("undo")
			err := tx.Transaction(func(tx *gorm.DB) error {
				if err := tx.Create(&Order{No: "inner"}).Error; err != nil {
					return err
				}
				return errUndo
			})
			wantIs(e.t, err, errUndo)
			return nil
		}))
		if n := e.count(&Order{}); n != 1 {
			e.t.Errorf("%d rows, want the outer one only", n)
		}
	})
}

func TestForgetNothing(t *testing.T) {
	e := onSQLite(t)
	if e.Forget("k") {
		t.Error("forgot a lock that nobody had")
	}
}

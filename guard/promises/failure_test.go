package promises_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/notify"
)

// loseTo loses the lock on key and lets another instance do op under it.
func (e *env) loseTo(key string, op guard.Op) {
	e.t.Helper()
	if !e.Forget(key) {
		e.t.Fatalf("key %q is not locked", key)
	}
	if err := e.Peer(e.t, e.open()).Do(bg, key, op); err != nil {
		e.t.Fatalf("the second holder failed: %v", err)
	}
}

func TestOverlapOfInserts(t *testing.T) {
	eachServer(t, func(e *env) {
		const key = "order:a"
		insert := guard.Insert(&Order{No: "a", Amount: 1}).Run
		err := e.Do(bg, key, func(ctx context.Context, tx *gorm.DB) error {
			e.loseTo(key, guard.Insert(&Order{No: "a", Amount: 2}).Run)
			return insert(ctx, tx)
		}, guard.Protects(&Order{No: "a"}))
		wantIs(e.t, err, guard.ErrIntercepted)
		wantIs(e.t, err, gorm.ErrDuplicatedKey)
		ev := e.wantEvent(notify.VerdictOverlap, notify.OutcomeRefused, key)
		if ev.HolderAtConflict != notify.HolderNone || ev.Table != "orders" || len(ev.Index) != 1 || ev.Index[0] != "no" {
			e.t.Errorf("event is %+v", ev)
		}
		var i *guard.InterceptionError
		if !errors.As(err, &i) || i.Event.ID != ev.ID {
			e.t.Errorf("the error's event is not the published one: %v", err)
		}
		if n := e.count(&Order{}); n != 1 {
			e.t.Errorf("%d rows, want 1", n)
		}
		e.wantFree(key)
	})
}

func TestOverlapWithHolderAtWork(t *testing.T) {
	eachServer(t, func(e *env) {
		const key = "order:a"
		peer := e.Peer(e.t, e.open())
		written, finish, done := make(chan error), make(chan struct{}), make(chan error, 1)
		err := e.Do(bg, key, func(ctx context.Context, tx *gorm.DB) error {
			e.Forget(key)
			go func() {
				done <- peer.Do(bg, key, func(ctx context.Context, tx *gorm.DB) error {
					written <- guard.Insert(&Order{No: "a"}).Run(ctx, tx)
					<-finish
					return nil
				})
			}()
			if err := <-written; err != nil {
				return err
			}
			close(finish) // the insert below waits for the peer's commit
			return guard.Insert(&Order{No: "a"}).Run(ctx, tx)
		}, guard.Protects(&Order{No: "a"}))
		wantIs(e.t, err, guard.ErrIntercepted)
		wantNil(e.t, <-done)
		e.wantEvent(notify.VerdictOverlap, notify.OutcomeRefused, key)
		if n := e.count(&Order{}); n != 1 {
			e.t.Errorf("%d rows, want 1", n)
		}
	})
}

func TestOverlapOfUpdates(t *testing.T) {
	eachServer(t, func(e *env) {
		const key = "sku:1"
		e.create(&Stock{ID: 1, Left: 9})
		s := &Stock{ID: 1}
		err := e.Apply(bg, key, guard.Update(s, func(s *Stock) error {
			e.loseTo(key, guard.Update(&Stock{ID: 1}, take).Run)
			return take(s)
		}))
		wantIs(e.t, err, guard.ErrIntercepted)
		ev := e.wantEvent(notify.VerdictOverlap, notify.OutcomeRefused, key)
		if ev.Versions == nil || *ev.Versions != (notify.Versions{Expected: 1, Found: 2}) {
			e.t.Errorf("versions are %+v, want 1 expected and 2 found", ev.Versions)
		}
		if got := e.stock(1); got.Left != 8 || got.Version != 2 {
			e.t.Errorf("stock is %+v, want one item sold", got)
		}
		if *s != (Stock{ID: 1}) {
			e.t.Errorf("after a failure the row is %+v, want it as it was", *s)
		}
	})
}

func TestOverlapSwallowed(t *testing.T) {
	eachServer(t, func(e *env) {
		const key = "order:a"
		err := e.Do(bg, key, func(ctx context.Context, tx *gorm.DB) error {
			if err := tx.Create(&Stock{ID: 1}).Error; err != nil {
				return err
			}
			e.loseTo(key, guard.Insert(&Order{No: "a"}).Run)
			wantIs(e.t, tx.Create(&Order{No: "a"}).Error, gorm.ErrDuplicatedKey)
			return nil
		}, guard.Protects(&Order{No: "a"}))
		wantIs(e.t, err, guard.ErrIntercepted)
		e.wantEvent(notify.VerdictOverlap, notify.OutcomeRefused, key)
		if n := e.count(&Stock{}); n != 0 {
			e.t.Errorf("%d rows beside a swallowed lock failure, want none", n)
		}
	})
}

// TestLostSwallowed: an operation may choose to ignore a duplicate only while
// it has the lock.
func TestLostSwallowed(t *testing.T) {
	each(t, func(e *env) {
		const key = "order:a"
		e.create(&Order{No: "a"})
		err := e.Do(bg, key, func(_ context.Context, tx *gorm.DB) error {
			e.Forget(key)
			wantIs(e.t, tryCreate(tx, &Order{No: "a"}), gorm.ErrDuplicatedKey)
			return tx.Create(&Stock{ID: 1}).Error
		}, guard.Protects(&Order{No: "a"}))
		wantIs(e.t, err, guard.ErrIntercepted)
		e.wantEvent(notify.VerdictLost, notify.OutcomeRefused, key)
		if n := e.count(&Stock{}); n != 0 {
			e.t.Errorf("%d rows beside a swallowed lock failure, want none", n)
		}
	})
}

// TestLostBeforeBegin has the lock lost, and the row committed by its next
// holder, while the first one waits for a connection.
func TestLostBeforeBegin(t *testing.T) {
	each(t, func(e *env) {
		const key = "order:a"
		pool, err := e.db.DB()
		wantNil(e.t, err)
		pool.SetMaxOpenConns(1)
		taken, err := pool.Conn(bg)
		wantNil(e.t, err)

		before := pool.Stats().WaitCount
		result := make(chan error, 1)
		go func() { result <- e.Apply(bg, key, guard.Insert(&Order{No: "a"})) }()
		testwait.Until(e.t, "the first holder waits for a connection", func() bool { return pool.Stats().WaitCount > before })
		e.loseTo(key, guard.Insert(&Order{No: "a"}).Run)
		wantNil(e.t, taken.Close())

		wantIs(e.t, <-result, guard.ErrIntercepted)
		ev := e.wantEvent(notify.VerdictLost, notify.OutcomeRefused, key)
		if ev.HolderAtConflict != notify.HolderNone || ev.Loss != notify.LossGone {
			e.t.Errorf("holder at the conflict is %q, loss %q, want none, gone", ev.HolderAtConflict, ev.Loss)
		}
		if n := e.count(&Order{}); n != 1 {
			e.t.Errorf("%d rows, want 1", n)
		}
	})
}

func TestLostAtRelease(t *testing.T) {
	each(t, func(e *env) {
		const key = "order:a"
		wantNil(e.t, e.Do(bg, key, func(ctx context.Context, tx *gorm.DB) error {
			e.Forget(key)
			return guard.Insert(&Order{No: "a"}).Run(ctx, tx)
		}))
		if ev := e.wantEvent(notify.VerdictLost, notify.OutcomeCommitted, key); ev.Loss != notify.LossGone {
			e.t.Errorf("loss is %q, want %q", ev.Loss, notify.LossGone)
		}
		if n := e.count(&Order{}); n != 1 {
			e.t.Errorf("%d rows, want 1", n)
		}
	})
}

// asked is an engine that does something after it was asked who holds a key.
type asked struct {
	lockengine.Engine
	then func(key string)
}

func (a asked) Inspect(ctx context.Context, key string) (lockengine.Holder, error) {
	h, err := a.Engine.Inspect(ctx, key)
	a.then(key)
	return h, err
}

// TestLostAfterRepeat: a repeat that still had the lock when it was judged, and
// finds it gone when it is released, is a repeat, and the loss is reported.
func TestLostAfterRepeat(t *testing.T) {
	each(t, func(e *env) {
		const key = "order:a"
		wantNil(e.t, e.Apply(bg, key, guard.Insert(&Order{No: "a"})))
		locker, err := lock.New(asked{e.Engine(), func(key string) { e.Forget(key) }}, lock.Config{})
		wantNil(e.t, err)
		g, err := guard.New(e.db, locker, guard.Config{Service: "asked", Publisher: &e.Events})
		wantNil(e.t, err)
		e.t.Cleanup(func() {
			if err := errors.Join(g.Close(bg), locker.Close(bg)); err != nil {
				e.t.Error(err)
			}
		})

		wantIs(e.t, g.Apply(bg, key, guard.Insert(&Order{No: "a"})), guard.ErrDuplicate)
		if ev := e.wantEvent(notify.VerdictLost, notify.OutcomeRefused, key); ev.Loss != notify.LossGone {
			e.t.Errorf("loss is %q, want %q", ev.Loss, notify.LossGone)
		}
	})
}

// shortGuard is a guard that finds a lost lock soon.
func (e *env) shortGuard() *guard.Guard { return e.shortGuardOn(e.db) }

func (e *env) shortGuardOn(db *gorm.DB) *guard.Guard {
	e.t.Helper()
	locker, err := lock.New(e.Engine(), lock.Config{TTL: 300 * time.Millisecond})
	wantNil(e.t, err)
	g, err := guard.New(db, locker, guard.Config{Service: "short", Publisher: &e.Events})
	wantNil(e.t, err)
	e.t.Cleanup(func() {
		if err := errors.Join(g.Close(bg), locker.Close(bg)); err != nil {
			e.t.Error(err)
		}
	})
	return g
}

func TestLostWhileRunning(t *testing.T) {
	each(t, func(e *env) {
		const key = "order:a"
		err := e.shortGuard().Do(bg, key, func(ctx context.Context, tx *gorm.DB) error {
			if err := guard.Insert(&Order{No: "a"}).Run(ctx, tx); err != nil {
				return err
			}
			e.Forget(key)
			<-ctx.Done()
			wantIs(e.t, context.Cause(ctx), guard.ErrLost)
			wantIs(e.t, tx.Create(&Order{No: "b"}).Error, guard.ErrLost)
			return nil // a lost lock is not op's to swallow
		})
		wantIs(e.t, err, guard.ErrLost)
		e.wantEvent(notify.VerdictLost, notify.OutcomeRolledBack, key)
		if n := e.count(&Order{}); n != 0 {
			e.t.Errorf("%d rows, want none", n)
		}
		e.wantFree(key)
	})
}

func TestLostWithAnErrorOfTheOperation(t *testing.T) {
	each(t, func(e *env) {
		err := e.shortGuard().Do(bg, "k", func(ctx context.Context, tx *gorm.DB) error {
			e.Forget("k")
			<-ctx.Done()
			return errSoldOut
		})
		wantIs(e.t, err, guard.ErrLost)
		wantIs(e.t, err, errSoldOut)
		e.wantEvent(notify.VerdictLost, notify.OutcomeRolledBack, "k")
	})
}

// failingPublisher takes no events.
type failingPublisher struct{}

func (failingPublisher) Publish(context.Context, notify.Event) error { return errBroken }

func TestFailedPublishChangesNothing(t *testing.T) {
	each(t, func(e *env) {
		locker, err := lock.New(e.Engine(), lock.Config{})
		wantNil(e.t, err)
		defer locker.Close(bg)
		g, err := guard.New(e.db, locker, guard.Config{Service: "s", Publisher: failingPublisher{}})
		wantNil(e.t, err)
		wantNil(e.t, g.Do(bg, "k", func(ctx context.Context, tx *gorm.DB) error {
			e.Forget("k")
			return tx.Create(&Order{No: "a"}).Error
		}))
		if n := e.count(&Order{}); n != 1 {
			e.t.Errorf("%d rows, want 1", n)
		}
	})
}

// TestEventOutlivesItsCaller: a caller that has gone does not take the event along.
func TestEventOutlivesItsCaller(t *testing.T) {
	each(t, func(e *env) {
		locker, err := lock.New(e.Engine(), lock.Config{})
		wantNil(e.t, err)
		defer locker.Close(bg)
		published := errors.New("no event")
		g, err := guard.New(e.db, locker, guard.Config{
			Service: "s",
			Publisher: notify.PublisherFunc(func(ctx context.Context, _ notify.Event) error {
				published = ctx.Err()
				return nil
			}),
		})
		wantNil(e.t, err)
		ctx, leave := context.WithCancel(bg)
		wantIs(e.t, g.Do(ctx, "k", func(context.Context, *gorm.DB) error {
			e.Forget("k")
			leave()
			return errSoldOut
		}), errSoldOut)
		wantNil(e.t, published)
	})
}

func TestTransactionControl(t *testing.T) {
	each(t, func(e *env) {
		wantIs(e.t, e.Do(bg, "k", func(_ context.Context, tx *gorm.DB) error {
			if err := tx.Create(&Order{No: "a"}).Error; err != nil {
				return err
			}
			return tx.Commit().Error
		}), guard.ErrTxControl)
		wantIs(e.t, e.Do(bg, "k", func(ctx context.Context, _ *gorm.DB) error {
			return e.db.WithContext(ctx).Create(&Order{No: "b"}).Error
		}), dbguard.ErrOutside)
		if n := e.count(&Order{}); n != 0 {
			e.t.Errorf("%d rows, want none", n)
		}
		e.wantFree("k")
		e.wantNoEvent()
	})
}

func TestCancelledCaller(t *testing.T) {
	each(t, func(e *env) {
		ctx, cancel := context.WithCancel(bg)
		err := e.Do(ctx, "k", func(ctx context.Context, tx *gorm.DB) error {
			if err := tx.Create(&Order{No: "a"}).Error; err != nil {
				return err
			}
			cancel()
			<-ctx.Done()
			return ctx.Err()
		})
		wantIs(e.t, err, context.Canceled)
		wantIs(e.t, e.Apply(ctx, "k", guard.Insert(&Order{No: "a"})), context.Canceled)
		if n := e.count(&Order{}); n != 0 {
			e.t.Errorf("%d rows, want none", n)
		}
		pool, err := e.db.DB()
		wantNil(e.t, err)
		if n := pool.Stats().InUse; n != 0 {
			e.t.Errorf("%d connections are in use", n)
		}
		e.wantFree("k")
		e.wantNoEvent()
	})
}

package promises_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/internal/dbtx"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/notify"
)

// Ware is a row that is stamped.
type Ware struct {
	ID      int64
	Left    int
	Version dbguard.Version
	Stamp   dbguard.Stamp
}

// Label is a row whose key comes from the program, and that no stamp tells from
// another's.
type Label struct {
	Code   string `gorm:"primaryKey;size:64"`
	Amount int
}

func takeWare(w *Ware) error {
	w.Left--
	return nil
}

// linked returns a service that reaches its database over a link.
func linked(t *testing.T) (*env, *testdb.Link) {
	t.Helper()
	return linkedTo(t, teststack.MySQL(t))
}

// TestCommitWithoutAnswer: a key that the database made, and a stamp, tell what became
// of the commit.
func TestCommitWithoutAnswer(t *testing.T) {
	for name, tc := range map[string]struct {
		set  func(k *testdb.Link, on bool)
		done bool
	}{
		"reply lost":           {func(k *testdb.Link, on bool) { k.After.Store(on) }, true},
		"never arrived":        {func(k *testdb.Link, on bool) { k.Before.Store(on) }, false},
		"the server waits yet": {func(k *testdb.Link, on bool) { k.Stall.Store(on) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			e, k := linked(t)
			e.create(&Ware{ID: 1, Left: 9})
			stored := func() (w Ware) { wantNil(t, e.db.Take(&w, 1).Error); return w }
			tc.set(k, true)
			row, w := &Order{No: "a"}, &Ware{ID: 1}
			errs := []error{
				e.Apply(bg, "order:a", guard.Insert(row)),
				e.Apply(bg, "sku:1", guard.Update(w, takeWare)),
			}
			tc.set(k, false)
			e.wantNoEvent()
			if tc.done {
				wantNil(t, errors.Join(errs...))
				if row.ID == 0 || *w != stored() || w.Left != 8 || e.count(&Order{}) != 1 {
					t.Errorf("in memory %+v and %+v, in the database %+v", row, w, stored())
				}
				wantIs(t, e.Apply(bg, "order:a", guard.Insert(&Order{No: "a"})), guard.ErrDuplicate)
				return
			}
			for _, err := range errs {
				if err == nil || errors.Is(err, guard.ErrUnknown) || errors.Is(err, dbtx.ErrCommitUnknown) {
					t.Errorf("error is %v, want a clean failure", err)
				}
				if text := fmt.Sprint(err); !strings.HasPrefix(text, "guard: the commit did not take effect: ") || strings.Contains(text, "unknown") {
					t.Errorf("error says %q, want that the commit did not take effect, and nothing else", text)
				}
			}
			if *row != (Order{No: "a"}) || *w != (Ware{ID: 1}) || stored().Left != 9 || e.count(&Order{}) != 0 {
				t.Errorf("in memory %+v and %+v, in the database %+v", row, w, stored())
			}
			wantNil(t, e.Apply(bg, "order:a", guard.Insert(row)))
			wantNil(t, e.Apply(bg, "sku:1", guard.Update(w, takeWare)))
		})
	}
}

func TestSessionKilled(t *testing.T) {
	mysqlOnly(t, func(e *env) {
		kill := func(tx *gorm.DB) {
			var id int64
			wantNil(e.t, tx.Raw("SELECT CONNECTION_ID()").Scan(&id).Error)
			wantNil(e.t, e.db.Exec(fmt.Sprintf("KILL %d", id)).Error)
		}
		err := e.Do(bg, "order:a", func(ctx context.Context, tx *gorm.DB) error {
			err := guard.Insert(&Order{No: "a"}).Run(ctx, tx)
			kill(tx)
			return err // the commit meets a dead session
		})
		if err == nil || errors.Is(err, guard.ErrUnknown) {
			e.t.Errorf("error is %v, want a clean failure", err)
		}
		err = e.Do(bg, "order:a", func(ctx context.Context, tx *gorm.DB) error {
			kill(tx)
			return guard.Insert(&Order{No: "a"}).Run(ctx, tx)
		})
		if err == nil {
			e.t.Error("an insert succeeded in a session that was killed")
		}
		if n := e.count(&Order{}); n != 0 {
			e.t.Errorf("%d rows, want none", n)
		}
		wantNil(e.t, e.Apply(bg, "order:a", guard.Insert(&Order{No: "a"})))
		e.wantNoEvent()
	})
}

// TestUnknownCommit: what left no trace that could be recognised stays unknown,
// and nobody may have the key until the lease would have ended.
func TestUnknownCommit(t *testing.T) {
	e, k := linked(t)
	g := e.shortGuardOn(e.open())
	k.After.Store(true)
	row := &Order{No: "a"}
	err := g.Do(bg, "order:a", func(_ context.Context, tx *gorm.DB) error {
		return tx.Create(row).Error
	})
	k.After.Store(false)
	wantIs(t, err, guard.ErrUnknown)
	wantIs(t, err, dbtx.ErrCommitUnknown)
	e.wantEvent(notify.VerdictUnknownCommit, notify.OutcomeUnknown, "order:a")
	wantIs(t, g.Apply(bg, "order:a", guard.Insert(row)), guard.ErrBusy)
	wantNil(t, g.Do(bg, "order:a", func(context.Context, *gorm.DB) error { return nil }, guard.Wait(time.Minute)))
}

// TestUnknownCommitWithoutTheLock: when the lock is lost during a COMMIT that is not
// answered, one event says both.
func TestUnknownCommitWithoutTheLock(t *testing.T) {
	for name, tt := range map[string]struct {
		op      guard.Op
		outcome notify.Outcome
	}{
		"unknown":   {guard.Insert(&Label{Code: "a"}).Run, notify.OutcomeUnknown},
		"committed": {guard.Insert(&Order{No: "a"}).Run, notify.OutcomeCommitted},
	} {
		t.Run(name, func(t *testing.T) {
			e, k := linked(t)
			g := e.shortGuardOn(e.open())
			reached, pass := k.Hold()
			defer pass()
			k.After.Store(true)
			lost, result := make(chan struct{}), make(chan error, 1)
			go func() {
				result <- g.Do(bg, "k", func(ctx context.Context, tx *gorm.DB) error {
					context.AfterFunc(ctx, func() { close(lost) })
					return tt.op(ctx, tx)
				})
			}()
			<-reached
			e.Forget("k")
			<-lost
			pass()
			err := <-result
			if errors.Is(err, guard.ErrUnknown) != (tt.outcome == notify.OutcomeUnknown) {
				t.Errorf("error is %v, outcome %s", err, tt.outcome)
			}
			if errors.Is(err, guard.ErrLost) {
				t.Errorf("error is %v: it promises a rollback", err)
			}
			if ev := e.wantEvent(notify.VerdictLost, tt.outcome, "k"); ev.Loss != notify.LossGone {
				t.Errorf("loss is %q, want gone", ev.Loss)
			}
		})
	}
}

// losing is an engine that loses a lock when it is asked who has it, and does not answer.
type losing struct {
	lockengine.Engine
	lose func()
}

func (l losing) Inspect(context.Context, string) (lockengine.Holder, error) {
	l.lose()
	return lockengine.Holder{}, lockengine.ErrNoAnswer
}

// TestLossWhileNobodyAnswers: after a COMMIT of unknown outcome the event says that the lease has
// ended, also if it did so while nobody answered who has the lock.
func TestLossWhileNobodyAnswers(t *testing.T) {
	e, k := linked(t)
	var nested *lock.Lease // of the operation's
	locker, err := lock.New(losing{e.Engine(), func() {
		e.Forget("k")
		testwait.Until(t, "the lease has ended", func() bool { return nested.Err() != nil })
	}}, lock.Config{TTL: 3 * time.Second})
	wantNil(t, err)
	g, err := guard.New(e.open(), locker, guard.Config{Service: "short", Publisher: &e.Events})
	wantNil(t, err)
	defer func() { wantNil(t, errors.Join(g.Close(bg), locker.Close(bg))) }()
	wantIs(t, g.Do(bg, "k", func(ctx context.Context, tx *gorm.DB) (err error) {
		nested, err = locker.TryAcquire(ctx, "k")
		wantNil(t, err)
		k.After.Store(true)
		return guard.Insert(&Label{Code: "a"}).Run(ctx, tx)
	}), guard.ErrUnknown)
	if ev := e.wantEvent(notify.VerdictLost, notify.OutcomeUnknown, "k"); ev.Loss != notify.LossGone {
		t.Errorf("loss is %q, want gone", ev.Loss)
	}
}

// TestUnknownCommitLikeAnother: the next holder has written just what this one was
// about to commit. Only the lock knows that it was another.
func TestUnknownCommitLikeAnother(t *testing.T) {
	const key = "sku:1"
	e, k := linked(t)
	e.create(&Stock{ID: 1, Left: 9})
	reached, pass := k.Hold()
	defer pass()
	k.Before.Store(true)
	s := &Stock{ID: 1}
	result := make(chan error, 1)
	go func() { result <- e.Apply(bg, key, guard.Update(s, take)) }()
	<-reached
	e.Forget(key)
	next, other := make(chan error, 1), e.Peer(t, e.db)
	id := make(chan int64, 1)
	go func() {
		next <- other.Do(bg, key, func(ctx context.Context, tx *gorm.DB) error {
			var n int64
			err := tx.Raw("SELECT CONNECTION_ID()").Scan(&n).Error
			id <- n
			if err != nil {
				return err
			}
			return guard.Update(&Stock{ID: 1}, take).Run(ctx, tx)
		})
	}()
	n := <-id
	e.untilWaits(n)
	pass()
	wantNil(t, <-next)
	wantIs(t, <-result, guard.ErrUnknown)
	if got := e.stock(1); got.Left != 8 || *s != (Stock{ID: 1}) {
		t.Errorf("row is %+v, in memory %+v, want what the next holder wrote, and nothing", got, *s)
	}
	if ev := e.wantEvent(notify.VerdictLost, notify.OutcomeUnknown, key); ev.Loss != notify.LossGone {
		t.Errorf("loss is %q, want gone", ev.Loss)
	}
}

// TestUnknownCommitDBOnly: also without a lock the callers of this process keep away
// until the ttl has passed.
func TestUnknownCommitDBOnly(t *testing.T) {
	t.Parallel()
	e, k := linked(t)
	direct := e.db
	e.db = e.open()
	g, engine := e.dbOnly(guard.Config{})
	k.After.Store(true)
	wantNil(t, g.Apply(bg, "order:a", guard.Insert(&Order{No: "a"}))) // its key proves it
	err := g.Apply(bg, "label:a", guard.Insert(&Label{Code: "a"}))
	k.After.Store(false)
	e.db = direct
	wantIs(t, err, guard.ErrUnknown)
	e.wantDegradedThen(notify.VerdictUnknownCommit, "")
	if ev := e.Events.All()[1]; ev.Place.Node != "a" || ev.Owner != "" || !ev.Deadline.IsZero() {
		t.Errorf("event is %+v, want one without a lock", ev)
	}
	wantIs(t, g.Apply(bg, "label:a", guard.Insert(&Label{Code: "a"})), guard.ErrBusy)
	wantIs(t, g.Apply(bg, "label:a", guard.Insert(&Label{Code: "a"}), guard.Wait(time.Minute)), guard.ErrDuplicate)

	engine.down[0].Store(false)
	testwait.Until(t, "the end of the outage is reported", func() bool { return len(e.Events.All()) == 3 })
	e.wantDegraded(2, notify.OutcomeCommitted, 1) // the order
}

// TestReadDBOnly: what wrote nothing is done, whatever became of its COMMIT.
func TestReadDBOnly(t *testing.T) {
	e, k := linked(t)
	e.db = e.open()
	g, _ := e.dbOnly(guard.Config{})
	k.After.Store(true)
	wantNil(t, g.Do(bg, "order:a", func(_ context.Context, tx *gorm.DB) error {
		return tx.Find(&[]Order{}).Error
	}))
	k.After.Store(false)
	e.wantEvent(notify.VerdictDegraded, notify.OutcomeUnknown, "order:a")
	wantNil(t, g.Do(bg, "order:a", func(context.Context, *gorm.DB) error { return nil }))
}

// TestUnverified: a repeat at which the lock can't be asked says so; when the
// release then finds the lock gone, it is none.
func TestUnverified(t *testing.T) {
	each(t, func(e *env) {
		e.create(&Order{No: "a"})
		engine := &mute{Engine: e.Engine()}
		locker, err := lock.New(engine, lock.Config{})
		wantNil(e.t, err)
		defer locker.Close(bg)
		g, err := guard.New(e.db, locker, guard.Config{Service: "s", Publisher: &e.Events})
		wantNil(e.t, err)
		wantIs(e.t, g.Apply(bg, "order:a", guard.Insert(&Order{No: "a"})), guard.ErrDuplicate)
		wantMetrics(e.t, g, map[string]float64{"operations_total duplicate": 1, "unverified_total": 1})
		e.wantNoEvent()

		err = g.Do(bg, "order:a", func(ctx context.Context, tx *gorm.DB) error {
			e.Forget("order:a")
			return guard.Insert(&Order{No: "a"}).Run(ctx, tx)
		})
		wantIs(e.t, err, guard.ErrIntercepted)
		ev := e.wantEvent(notify.VerdictLost, notify.OutcomeRefused, "order:a")
		if ev.HolderAtConflict != notify.HolderNone || ev.Loss != notify.LossGone {
			e.t.Errorf("holder is %q, loss %q, want none, gone", ev.HolderAtConflict, ev.Loss)
		}
	})
}

// mute is an engine that can't be asked who holds a key.
type mute struct{ lockengine.Engine }

func (mute) Inspect(context.Context, string) (lockengine.Holder, error) {
	return lockengine.Holder{}, errBroken
}

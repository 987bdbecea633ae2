package promises_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/internal/dbtx"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/notify"
	"github.com/belaygo/belay/once"
)

var errDeadlock = &mysql.MySQLError{Number: 1213, Message: "Deadlock found"}

// deadlocks has the first n creates and updates end as if in a deadlock.
func (e *env) deadlocks(n int) (met *int) {
	e.t.Helper()
	met = new(int)
	refuse := func(db *gorm.DB) {
		if *met < n {
			*met++
			_ = db.AddError(errDeadlock)
		}
	}
	cb := e.db.Callback()
	wantNil(e.t, errors.Join(
		cb.Create().Replace("test:deadlock", refuse), cb.Update().Replace("test:deadlock", refuse)))
	return met
}

func (e *env) prepareDeadlocks() {
	e.t.Helper()
	cb := e.db.Callback()
	nop := func(*gorm.DB) {}
	wantNil(e.t, errors.Join(
		cb.Create().Before("gorm:create").Register("test:deadlock", nop),
		cb.Update().Before("gorm:update").Register("test:deadlock", nop)))
}

func TestReadyMadeIsRetried(t *testing.T) {
	each(t, func(e *env) {
		e.prepareDeadlocks()
		e.create(&Stock{ID: 1, Left: 9})
		e.deadlocks(3)
		row := &Order{No: "a"}
		wantNil(e.t, e.Apply(bg, "order:a", guard.Insert(row)))
		if row.ID == 0 {
			e.t.Error("the inserted row has no ID")
		}

		e.deadlocks(3)
		calls, s := 0, &Stock{ID: 1}
		wantNil(e.t, e.Apply(bg, "sku:1", guard.Update(s, func(s *Stock) error {
			calls++
			if s.Left != 9 || s.Version != 1 {
				e.t.Errorf("attempt %d begins with %+v", calls, s)
			}
			return take(s)
		})))
		if want := (Stock{ID: 1, Left: 8, Version: 2}); calls != 4 || *s != want || e.stock(1) != want {
			e.t.Errorf("after %d calls %+v, in the database %+v, want 4 and %+v", calls, *s, e.stock(1), want)
		}

		met := e.deadlocks(4)
		row = &Order{No: "b"}
		wantIs(e.t, e.Apply(bg, "order:b", guard.Insert(row)), errDeadlock)
		if *met != 4 || *row != (Order{No: "b"}) {
			e.t.Errorf("%d attempts, the row is %+v, want 4 and as it was", *met, *row)
		}
		wantNil(e.t, e.Apply(bg, "order:b", guard.Insert(row)))
		e.wantNoEvent()
	})
}

// TestCustomIsNotRetried, unless it says that it may be.
func TestCustomIsNotRetried(t *testing.T) {
	each(t, func(e *env) {
		e.prepareDeadlocks()
		calls := 0
		op := func(ctx context.Context, tx *gorm.DB) error {
			calls++
			return guard.Insert(&Order{No: "a"}).Run(ctx, tx)
		}
		e.deadlocks(1)
		wantIs(e.t, e.Do(bg, "k", op), errDeadlock)
		if calls != 1 {
			e.t.Errorf("a custom operation was run %d times", calls)
		}
		e.deadlocks(2)
		wantIs(e.t, e.Do(bg, "k", op, guard.Retries(1)), errDeadlock)
		e.deadlocks(1)
		wantNil(e.t, e.Do(bg, "k", op, guard.Retries(1)))
		if calls != 5 {
			e.t.Errorf("it was run %d times, want 5", calls)
		}
		e.wantNoEvent()
	})
}

// TestRetryKeepsTheLease: all attempts run under one grant, and none when it is
// gone.
func TestRetryKeepsTheLease(t *testing.T) {
	each(t, func(e *env) {
		e.prepareDeadlocks()
		peer := e.Peer(e.t, e.db)
		e.deadlocks(1)
		wantNil(e.t, e.Do(bg, "k", func(_ context.Context, tx *gorm.DB) error {
			wantIs(e.t, peer.Apply(bg, "k", guard.Insert(&Order{No: "b"})), guard.ErrBusy)
			return tx.Create(&Order{No: "a"}).Error
		}, guard.Retries(1)))
		e.wantNoEvent()

		e.deadlocks(1)
		calls := 0
		err := e.shortGuard().Do(bg, "k", func(ctx context.Context, tx *gorm.DB) error {
			calls++
			err := tx.Create(&Order{No: "b"}).Error
			e.Forget("k")
			<-ctx.Done()
			return err
		}, guard.Retries(5))
		wantIs(e.t, err, guard.ErrLost)
		wantIs(e.t, err, errDeadlock)
		if calls != 1 {
			e.t.Errorf("%d attempts without a lease", calls)
		}
		e.wantEvent(notify.VerdictLost, notify.OutcomeRolledBack, "k")
	})
}

// TestRealDeadlock has two operations wait for each other. The victim swallows
// that and goes on: nothing it does then is committed. When it may be run again,
// both are done.
func TestRealDeadlock(t *testing.T) {
	eachServer(t, func(e *env) {
		e.create(&Stock{ID: 1}, &Stock{ID: 2})
		both := func(opts ...guard.Option) (errs [2]error) {
			var begun, done sync.WaitGroup
			begun.Add(2)
			for i := range errs {
				done.Go(func() {
					first := sync.OnceFunc(func() { begun.Done(); begun.Wait() })
					set := func(tx *gorm.DB, id int) error {
						left := tx.Statement.Quote("left")
						return tx.Exec("UPDATE stocks SET "+left+" = "+left+" + 1 WHERE id = ?", id).Error
					}
					errs[i] = e.Do(bg, fmt.Sprint("k", i), func(_ context.Context, tx *gorm.DB) error {
						if err := set(tx, 1+i); err != nil {
							return err
						}
						first()
						_ = set(tx, 2-i) // one of them is the victim here
						_ = tx.Create(&Order{No: fmt.Sprint(i, len(opts))}).Error
						return nil
					}, opts...)
				})
			}
			done.Wait()
			return errs
		}

		errs := both()
		victim, other := errs[0], errs[1]
		if victim == nil {
			victim, other = other, victim
		}
		wantIs(e.t, victim, dbtx.ErrPoisoned)
		wantNil(e.t, other)
		if n := e.count(&Order{}); n != 1 || e.stock(1).Left != 1 || e.stock(2).Left != 1 {
			e.t.Errorf("%d orders, stocks %+v and %+v, want what one operation wrote", n, e.stock(1), e.stock(2))
		}

		errs = both(guard.Retries(3))
		wantNil(e.t, errors.Join(errs[0], errs[1]))
		if n := e.count(&Order{}); n != 3 || e.stock(1).Left != 3 || e.stock(2).Left != 3 {
			e.t.Errorf("%d orders, stocks %+v and %+v, want what three operations wrote", n, e.stock(1), e.stock(2))
		}
		e.wantNoEvent()
	})
}

// TestThreeInserts has two callers, of whom one has lost the lock to the other, and
// a third who does not ask for it insert one row. When that one rolls back, the
// server ends one of the two with a deadlock. His second attempt meets the row that
// the other one has written: an overlap, not a repeat.
func TestThreeInserts(t *testing.T) {
	mysqlOnly(t, func(e *env) {
		const key = "order:a"
		third := e.db.Begin()
		wantNil(e.t, third.Create(&Order{No: "a"}).Error)
		defer third.Rollback()
		var mu sync.Mutex
		var ids []int64
		begun := func() int { mu.Lock(); defer mu.Unlock(); return len(ids) }
		insert := func(ctx context.Context, tx *gorm.DB) error { // no test's goroutine: it must return
			var id int64
			if err := tx.Raw("SELECT CONNECTION_ID()").Scan(&id).Error; err != nil {
				return err
			}
			mu.Lock()
			ids = append(ids, id)
			mu.Unlock()
			if err := guard.Insert(&Order{No: "a"}).Run(ctx, tx); err != nil {
				return err
			}
			for deadline := time.Now().Add(30 * time.Second); begun() < 3; <-time.After(time.Millisecond) {
				if time.Now().After(deadline) {
					return errors.New("the other one has not tried again")
				}
			}
			return nil
		}
		waiting := func(n int) bool {
			mu.Lock()
			defer mu.Unlock()
			return testdb.Waiting(e.t, e.db, ids...) == n
		}
		peer := e.Peer(e.t, e.open())
		results := make(chan error, 2)
		go func() { results <- e.Do(bg, key, insert, guard.Retries(3)) }()
		testwait.Until(e.t, "the first one waits for the row", func() bool { return waiting(1) })
		e.Forget(key)
		go func() { results <- peer.Do(bg, key, insert, guard.Retries(3)) }()
		testwait.Until(e.t, "both wait for the row", func() bool { return waiting(2) })
		wantNil(e.t, third.Rollback().Error)

		won, refused := <-results, <-results
		if won != nil {
			won, refused = refused, won
		}
		wantNil(e.t, won)
		wantIs(e.t, refused, guard.ErrIntercepted)
		overlaps := 0
		for _, ev := range e.Events.All() {
			if ev.Verdict == notify.VerdictOverlap {
				overlaps++
			} else if ev.Verdict != notify.VerdictLost || ev.Outcome != notify.OutcomeCommitted { // by the winner, if it was the first
				e.t.Errorf("event is %+v", ev)
			}
		}
		if n := e.count(&Order{}); n != 1 || overlaps != 1 {
			e.t.Errorf("%d rows and %d overlaps reported, want one of each", n, overlaps)
		}
	})
}

// TestRetryHidesNoOverlap has somebody else write the row between two attempts,
// so that the second one by itself sees a repeat, or no rival at all.
func TestRetryHidesNoOverlap(t *testing.T) {
	mysqlOnly(t, func(e *env) {
		e.create(&Stock{ID: 1, Left: 9})
		other := e.open()
		for _, trigger := range []string{"INSERT ON orders", "UPDATE ON stocks"} {
			wantNil(e.t, e.db.Exec("CREATE TRIGGER "+trigger[:6]+"_meets BEFORE "+trigger+` FOR EACH ROW
				IF @deadlock = 1 THEN SIGNAL SQLSTATE '40001' SET MYSQL_ERRNO = 1213; END IF`).Error)
		}

		// The first attempt begins before the other one writes, the second after.
		run := func(op guard.Op, meanwhile func(*gorm.DB) error) error {
			calls := 0
			return e.Do(bg, "k", func(ctx context.Context, tx *gorm.DB) error {
				calls++
				wantNil(e.t, tx.Exec("SET @deadlock = ?", calls).Error)
				if calls == 1 {
					dbtx.FromContext(ctx).OnRollback(func() { wantNil(e.t, meanwhile(other)) })
				}
				return op(ctx, tx)
			}, guard.Retries(1))
		}
		wantIs(e.t, run(guard.Insert(&Order{No: "a"}).Run, func(db *gorm.DB) error {
			return db.Create(&Order{No: "a"}).Error
		}), guard.ErrIntercepted)
		e.wantEvent(notify.VerdictOverlap, notify.OutcomeRefused, "k")

		wantIs(e.t, run(guard.Update(&Stock{ID: 1}, take).Run, func(db *gorm.DB) error {
			return db.Model(&Stock{ID: 1}).Update("left", 5).Error
		}), guard.ErrIntercepted)
		if events := e.Events.All(); len(events) != 2 || events[1].Verdict != notify.VerdictOverlap {
			e.t.Errorf("events are %+v, want another overlap", events)
		}
	})
}

// claimsDeadlock returns a pool on which the claims with these numbers, from 1, meet a
// deadlock.
func (e *env) claimsDeadlock(which ...int) *gorm.DB {
	e.t.Helper()
	db, n := e.open(), 0
	wantNil(e.t, db.Callback().Create().Before("gorm:create").Register("test:deadlock", func(db *gorm.DB) {
		if db.Statement.Table != "belay_once" {
			return
		}
		if n++; slices.Contains(which, n) {
			_ = db.AddError(errDeadlock)
		}
	}))
	return db
}

// TestTriesToClaimAreNoRetries: they leave the operation its own.
func TestTriesToClaimAreNoRetries(t *testing.T) {
	t.Parallel()
	withOnce(t, func(e *env) {
		ran := 0
		wantNil(e.t, e.Peer(t, e.claimsDeadlock(1, 2, 3)).Do(bg, "k", func(context.Context, *gorm.DB) error {
			if ran++; ran == 1 {
				return errDeadlock
			}
			return nil
		}, guard.For(request("a")), guard.Retries(1)))
	})
}

// TestRefusalIsStoredAgain: to store a refusal again, behind its claim, runs no operation.
func TestRefusalIsStoredAgain(t *testing.T) {
	t.Parallel()
	mysqlOnly(t, func(e *env) {
		wantNil(e.t, once.Migrate(bg, e.db))
		e.create(&Stock{ID: 1, Left: 9}, &Stock{ID: 2, Left: 9})
		wantNil(e.t, e.db.Exec(`CREATE TRIGGER answers_meet BEFORE INSERT ON belay_answer FOR EACH ROW BEGIN
			SET @answers = COALESCE(@answers, 0) + 1;
			IF @answers = 1 THEN SIGNAL SQLSTATE '40001' SET MYSQL_ERRNO = 1213; END IF;
		END`).Error)
		db := e.open()
		pool, err := db.DB()
		wantNil(e.t, err)
		pool.SetMaxOpenConns(1) // whose session counts
		ran := 0
		got, err := guard.Once(bg, e.Peer(t, db), request("a"), func(ctx context.Context, tx *gorm.DB) (receipt, error) {
			ran++
			_, err := sells(1)(ctx, tx)
			return receipt{}, errors.Join(err, guard.Refuse(receipt{Note: "declined"}))
		})
		wantAnswer(e.t, got, err, guard.Answer[receipt]{Value: receipt{Note: "declined"}, Refused: true})
		if ran != 1 {
			e.t.Errorf("the operation ran %d times", ran)
		}
	})
}

// TestRefusalIsClaimedAgain: to store a refusal runs no operation.
func TestRefusalIsClaimedAgain(t *testing.T) {
	t.Parallel()
	withOnce(t, func(e *env) {
		got, err := guard.Once(bg, e.Peer(t, e.claimsDeadlock(2)), request("a"), func(ctx context.Context, tx *gorm.DB) (receipt, error) {
			_, err := sells(1)(ctx, tx)
			return receipt{}, errors.Join(err, guard.Refuse(receipt{Note: "declined"}))
		})
		wantAnswer(e.t, got, err, guard.Answer[receipt]{Value: receipt{Note: "declined"}, Refused: true})
	})
}

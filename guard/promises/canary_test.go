package promises_test

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/guard/internal/inside"
	"github.com/belaygo/belay/internal/requestkey"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/memlock"
	"github.com/belaygo/belay/notify"
)

// lookAgain is the pause between two looks for lost commits in these tests.
const lookAgain = 300 * time.Millisecond

// eachCanary runs f on every database that has a server.
func eachCanary(t *testing.T, f func(e *env)) {
	t.Parallel()
	eachServer(t, func(e *env) {
		e.create(&Stock{ID: 1, Left: 1e6})
		e.inside().LookAgainAfter(lookAgain)
		f(e)
	})
}

// serve serves requests with these numbers.
func (e *env) serve(from, to int) {
	e.t.Helper()
	for n := from; n < to; n++ {
		wantNil(e.t, e.Do(bg, "stock:1", takeOne(1), guard.For(request(fmt.Sprint(n)))))
	}
}

// lose deletes what a database that was restored lacks.
func (e *env) lose(requests ...string) {
	e.t.Helper()
	for _, id := range requests {
		r := request(id)
		sum := requestkey.Sum(r.Operation, r.Scope, r.ID)
		wantNil(e.t, e.db.Exec("DELETE FROM belay_once WHERE request = ?", sum[:]).Error)
	}
}

// look serves one more request, and waits for the end of the look that follows.
func (e *env) look(id string) {
	e.t.Helper()
	_, before := e.inside().Looks()
	wantNil(e.t, e.Do(bg, "stock:1", takeOne(1), guard.For(request(id))))
	e.wantLook(before)
}

func (e *env) wantLook(after time.Time) {
	e.t.Helper()
	testwait.Until(e.t, "it has looked for lost commits", func() bool {
		looks, last := e.inside().Looks()
		return !looks && last.After(after)
	})
}

// wantLost wants one event about lost commits.
func (e *env) wantLost(n int) notify.Event {
	e.t.Helper()
	ev := e.wantEvent(notify.VerdictCommitLost, notify.OutcomeUnknown, "")
	switch {
	case ev.Count != n:
		e.t.Errorf("%d commits are lost, want %d", ev.Count, n)
	case ev.Lost == nil || ev.Lost.Server == "" || ev.Lost.Now == "" || ev.Lost.LastAt.Before(ev.Lost.FirstAt):
		e.t.Errorf("lost = %+v", ev.Lost)
	}
	return ev
}

// TestLostCommitsAreReported: whatever front has served a request, its commit is missed once, by the
// first operation on the next server.
func TestLostCommitsAreReported(t *testing.T) {
	eachCanary(t, func(e *env) {
		began := time.Now()
		e.serve(0, 3)
		_, err := guard.Once(bg, e.Guard.Guard, request("once"), sells(1), guard.Also("stock:1", &Stock{ID: 1}))
		wantNil(t, err)
		_, err = guard.Once(bg, e.Guard.Guard, request("refused"), func(context.Context, *gorm.DB) (receipt, error) {
			return receipt{}, guard.Refuse(receipt{Left: 1})
		})
		wantNil(t, err)
		wantNil(t, e.DoSQL(bg, "stock:1", func(ctx context.Context, tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, "UPDATE stocks SET version = version + 1 WHERE id = 1")
			return err
		}, guard.For(request("sql"))))
		e.inside().FailOver()
		e.lose("0", "2", "once", "refused", "sql")
		e.look("next")
		ev := e.wantLost(5)
		if ev.Lost.Server != "former" || ev.Lost.FirstAt.Before(began) || ev.Lost.LastAt.After(ev.CaughtAt) {
			t.Errorf("lost = %+v", ev.Lost)
		}
		e.inside().FailOver()
		e.look("again")
		e.wantLost(5)
	})
}

// TestLostCrew: those that share a transaction lose their commits together.
func TestLostCrew(t *testing.T) {
	eachCanary(t, func(e *env) {
		const callers = 8
		var running sync.WaitGroup
		for n := range callers {
			running.Go(func() {
				err := e.Apply(bg, "stock:1", guard.Update(&Stock{ID: 1}, func(s *Stock) error { s.Left--; return nil }),
					guard.For(request(fmt.Sprint(n))), guard.Combine(), guard.Wait(time.Minute))
				if err != nil {
					t.Error(err)
				}
			})
		}
		running.Wait()
		e.inside().FailOver()
		e.lose("0", "1", "2", "3", "4", "5", "6", "7")
		e.look("next")
		e.wantLost(callers)
	})
}

// TestLostAndDoneAgain: the claim of another attempt is not the one that was committed.
func TestLostAndDoneAgain(t *testing.T) {
	eachCanary(t, func(e *env) {
		e.serve(0, 2)
		e.lose("1")
		wantNil(t, e.Peer(t, e.db).Do(bg, "stock:1", takeOne(1), guard.For(request("1"))))
		e.inside().FailOver()
		e.look("next")
		e.wantLost(1)
	})
}

// TestNothingIsLost: another server that has all commits is no news, nor is an operation that is a
// repeat, nor a new connection.
func TestNothingIsLost(t *testing.T) {
	eachCanary(t, func(e *env) {
		e.serve(0, 3)
		e.inside().FailOver()
		e.look("next")
		pool, err := e.DB.DB()
		wantNil(t, err)
		pool.SetMaxIdleConns(-1) // each operation has a connection of its own
		e.serve(10, 15)
		wantIs(t, e.Do(bg, "stock:1", e.never(), guard.For(request("1"))), guard.ErrDuplicate)
		_, last := e.inside().Looks()
		e.inside().FailOver()
		e.look("last")
		e.wantLook(last)
		e.wantNoEvent()
	})
}

// TestDeletedByHand: claims that somebody deletes are only missed if the server changes.
func TestDeletedByHand(t *testing.T) {
	eachCanary(t, func(e *env) {
		e.serve(0, 3)
		wantNil(t, e.db.Exec("DELETE FROM belay_once").Error)
		e.serve(10, 13)
		e.wantNoEvent()
		e.inside().FailOver()
		e.look("next")
		e.wantLost(3)
	})
}

// TestPurgedIsNotLost: a purger may have deleted a claim unless an older one is there.
func TestPurgedIsNotLost(t *testing.T) {
	eachCanary(t, func(e *env) {
		e.serve(0, 3)
		e.lose("0", "1", "2")
		e.inside().Age(2 * time.Minute)
		e.inside().FailOver()
		e.look("next")
		e.wantNoEvent()
	})
}

// TestLostThoughOld: a claim is missed for as long as an older one is kept.
func TestLostThoughOld(t *testing.T) {
	eachCanary(t, func(e *env) {
		e.serve(0, 3)
		e.lose("1", "2")
		old := map[string]string{
			"mysql":    "UPDATE belay_once SET created_at = created_at - INTERVAL 3 MINUTE",
			"postgres": "UPDATE belay_once SET created_at = created_at - INTERVAL '3 minutes'",
		}
		wantNil(t, e.db.Exec(old[e.db.Name()]).Error)
		e.inside().Age(2 * time.Minute)
		e.inside().FailOver()
		e.look("next")
		e.wantLost(2)
	})
}

// TestMissingForAMoment: a new primary may apply what it has received after its first answer.
func TestMissingForAMoment(t *testing.T) {
	eachCanary(t, func(e *env) {
		e.serve(0, 3)
		e.inside().LookAgainAfter(3 * time.Second)
		wantNil(t, e.db.Exec("CREATE TABLE late AS SELECT * FROM belay_once").Error)
		defer func() { wantNil(t, e.db.Exec("DROP TABLE late").Error) }()
		e.serve(3, 4)
		e.lose("0", "1", "2")
		e.inside().FailOver()
		_, before := e.inside().Looks()
		wantNil(t, e.Do(bg, "stock:1", takeOne(1)))
		testwait.Until(t, "it has found the one that is there", func() bool { return e.inside().Found() == 1 })
		wantNil(t, e.db.Exec("INSERT INTO belay_once SELECT * FROM late").Error)
		e.wantLook(before)
		e.wantNoEvent()
	})
}

// TestLookFails: a look that fails is repeated.
func TestLookFails(t *testing.T) {
	eachCanary(t, func(e *env) {
		e.serve(0, 3)
		e.lose("0")
		wantNil(t, e.db.Exec("ALTER TABLE belay_once RENAME TO hidden").Error)
		e.inside().FailOver()
		_, before := e.inside().Looks()
		wantNil(t, e.Do(bg, "stock:1", takeOne(1)))
		var first time.Time
		testwait.Until(t, "it looks in vain", func() bool { _, first = e.inside().Looks(); return first.After(before) })
		testwait.Until(t, "it looks again", func() bool { _, last := e.inside().Looks(); return last.After(first) })
		wantNil(t, e.db.Exec("ALTER TABLE hidden RENAME TO belay_once").Error)
		e.wantLook(before)
		e.wantLost(1)
	})
}

// TestCloseEndsTheLook: Close does not wait for the second look.
func TestCloseEndsTheLook(t *testing.T) {
	eachCanary(t, func(e *env) {
		e.inside().LookAgainAfter(time.Hour)
		e.serve(0, 3)
		e.lose("0")
		e.inside().FailOver()
		_, before := e.inside().Looks()
		wantNil(t, e.Do(bg, "stock:1", takeOne(1)))
		testwait.Until(t, "it looks", func() bool { _, last := e.inside().Looks(); return last.After(before) })
		ctx, cancel := context.WithTimeout(bg, 30*time.Second)
		defer cancel()
		wantNil(t, e.Close(ctx))
		e.wantNoEvent()
	})
}

// TestLookPanics: a Publisher that panics does not end the process.
func TestLookPanics(t *testing.T) {
	t.Parallel()
	eachServer(t, func(e *env) {
		e.create(&Stock{ID: 1, Left: 9})
		published := make(chan notify.Event, 1)
		locker, err := lock.New(memlock.New(), lock.Config{})
		wantNil(t, err)
		defer func() { wantNil(t, locker.Close(bg)) }()
		g, err := guard.New(e.open(), locker, guard.Config{Service: "test", Publisher: notify.PublisherFunc(func(_ context.Context, ev notify.Event) error {
			published <- ev
			panic("a publisher")
		})})
		wantNil(t, err)
		defer func() { wantNil(t, g.Close(bg)) }()
		inside.Of(g).LookAgainAfter(lookAgain)
		wantNil(t, g.Do(bg, "stock:1", takeOne(1), guard.For(request("0"))))
		e.lose("0")
		inside.Of(g).FailOver()
		wantNil(t, g.Do(bg, "stock:1", takeOne(1)))
		if ev := <-published; ev.Verdict != notify.VerdictCommitLost {
			t.Errorf("event = %+v", ev)
		}
	})
}

// TestOnlyRequestsAreKept: an operation without a request, and one that is rolled back, leave nothing
// to look for, nor does SQLite, whose server is the program.
func TestOnlyRequestsAreKept(t *testing.T) {
	t.Parallel()
	each(t, func(e *env) {
		e.create(&Stock{ID: 1, Left: 9})
		wantNil(t, e.Do(bg, "stock:1", takeOne(1)))
		wantIs(t, e.Do(bg, "stock:1", func(context.Context, *gorm.DB) error { return context.Canceled }, guard.For(request("1"))), context.Canceled)
		want := 0
		if n := e.inside().Kept(); n != want {
			t.Errorf("%d claims are kept, want none", n)
		}
		e.serve(1, 2)
		if e.db.Name() != "sqlite" {
			want = 1
		}
		if n := e.inside().Kept(); n != want {
			t.Errorf("%d claims are kept, want %d", n, want)
		}
	})
}

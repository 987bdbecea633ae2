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
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
)

// relays deletes messages as soon as they are committed, until the returned function is called,
// which returns how many there were.
func (e *env) relays() (stop func() int64) {
	e.t.Helper()
	var ended atomic.Bool
	var sent int64
	var all sync.WaitGroup
	all.Go(func() {
		for !ended.Load() {
			deleted := e.db.Exec("DELETE FROM belay_message") // waits for the rows of a transaction
			sent += deleted.RowsAffected
		}
	})
	return func() int64 {
		ended.Store(true)
		all.Wait()
		return sent
	}
}

// TestSentCommitWithoutAnswer: a message that a relay has sent and deleted does not show that its
// COMMIT, whose answer was lost, did not take effect.
func TestSentCommitWithoutAnswer(t *testing.T) {
	for name, dsn := range map[string]func(testing.TB) string{"mysql": teststack.MySQL, "postgres": teststack.Postgres} {
		t.Run(name, func(t *testing.T) {
			e, k := linkedTo(t, dsn(t))
			for n := range 10 {
				id := int64(n + 1)
				e.create(&Ware{ID: id, Left: 9}, &Stock{ID: id, Left: 9})
				for what, change := range map[string]guard.Change{
					"stamp":   guard.Update(&Ware{ID: id}, takeWare),
					"version": guard.Update(&Stock{ID: id}, take),
				} {
					stop := e.relays()
					op := guard.All(change, send("a")).Run
					err := loseCommit(e.Guard, k, fmt.Sprint(what, id), op, true)
					if sent := stop(); sent != 1 {
						t.Fatalf("%s: the relay has sent %d messages", what, sent)
					}
					if err != nil && (what == "stamp" || name == "postgres" || !errors.Is(err, guard.ErrUnknown)) {
						t.Errorf("%s: Do returned %v, but the message has left", what, err)
					}
				}
			}
		})
	}
}

// TestOnlySentCommit: an operation that only sends has written. If its COMMIT did not arrive, its
// caller is not told that it was done.
func TestOnlySentCommit(t *testing.T) {
	for name, dsn := range map[string]func(testing.TB) string{"mysql": teststack.MySQL, "postgres": teststack.Postgres} {
		t.Run(name, func(t *testing.T) {
			e, k := linkedTo(t, dsn(t))
			err := loseCommit(e.Guard, k, "k", send("a").Run, false)
			if err == nil || name == "postgres" && errors.Is(err, guard.ErrUnknown) {
				t.Errorf("Do returned %v", err)
			}
			e.wantSent()
		})
	}
}

// TestSentAlready: a commit that stored no message, as it is there still, has its answer, too.
func TestSentAlready(t *testing.T) {
	for name, dsn := range map[string]func(testing.TB) string{"mysql": teststack.MySQL, "postgres": teststack.Postgres} {
		t.Run(name, func(t *testing.T) {
			e, k := linkedTo(t, dsn(t))
			wantNil(t, e.Do(bg, "k", send("a").Run, guard.For(request("1"))))
			wantNil(t, e.db.Exec("DELETE FROM belay_once").Error)
			wantNil(t, loseCommit(e.Guard, k, "k", send("a").Run, true, guard.For(request("1"))))
			e.wantSent("a")
		})
	}
}

// TestCombineSends: the callers of a crew send their messages in one transaction, in the order of
// their changes, and each as its own change has left the row.
func TestCombineSends(t *testing.T) {
	each(t, func(e *env) {
		e.create(&Stock{ID: 1, Left: 4})
		e.inside().NoTurnLimit()
		saves := 0
		wantNil(t, e.Guard.DB.Callback().Update().Before("gorm:update").Register("test:saves", func(*gorm.DB) { saves++ }))
		errs := make([]error, 6)
		var all sync.WaitGroup
		wantNil(e.t, e.Do(bg, "sku:1", func(context.Context, *gorm.DB) error {
			for i := range errs {
				s := Stock{ID: 1}
				change := guard.All(
					guard.SendFunc(func() (guard.Message, error) {
						return guard.Message{Topic: "sale", Name: "sale", Body: fmt.Append(nil, i, ": ", s.Left, " left")}, nil
					}),
					guard.Update(&s, take), guard.Insert(&Order{No: fmt.Sprint(i)}))
				if i == 2 { // fails by itself
					change = guard.All(guard.Update(&s, take), guard.Insert(&Order{No: "2"}), guard.Send(guard.Message{Topic: "sale", Key: "another"}))
				}
				change = guard.All(change, guard.Send(guard.Message{Topic: "also", Name: "also", Body: []byte("also")}))
				all.Go(func() {
					errs[i] = e.Apply(bg, "sku:1", change, guard.Wait(time.Minute), guard.Combine(), guard.For(request(fmt.Sprint(i))))
				})
				testwait.Until(e.t, "the caller queues", func() bool { return e.inside().Lines() == 1 && e.inside().Queued("sku:1") == i })
			}
			return nil
		}))
		all.Wait()
		for i, err := range errs {
			want := []error{2: guard.ErrMessage, 5: errSoldOut}[i:min(i+1, 6)]
			if !errors.Is(err, want[0]) {
				e.t.Errorf("caller %d has the error %v, want %v", i, err, want[0])
			}
		}
		var bodies []string
		for _, m := range sentBy(e.t, e.db) {
			bodies = append(bodies, string(m.Body))
		}
		if got := strings.Join(bodies, ", "); got != "0: 3 left, also, 1: 2 left, also, 3: 1 left, also, 4: 0 left, also" {
			e.t.Errorf("the messages are %q", got)
		}
		if saves != 1 || e.count(&Order{}) != 4 {
			e.t.Errorf("the row was saved %d times, and there are %d orders", saves, e.count(&Order{}))
		}
	})
}

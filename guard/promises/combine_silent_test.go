package promises_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/guard/internal/inside"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/lock"
)

// TestCombineHoldsNobodyAtASilentDatabase: the database does not answer before the changes are
// made. A member whose context ends gets an answer, also if it leads, and the changes of the
// others are made when the database answers again.
func TestCombineHoldsNobodyAtASilentDatabase(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		table string // the statements on it get no answer
		ended []int  // whose contexts end
	}{
		"the leader, at the row":       {"stocks", []int{0}},
		"one of them, at the orders":   {"orders", []int{2}},
		"one after the other":          {"orders", []int{0, 1}},
		"all that wait for the answer": {"stocks", []int{2, 3, 1, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachServer(t, func(e *env) {
				locker, err := lock.New(e.Engine(), lock.Config{})
				wantNil(e.t, err)
				g, err := guard.New(e.db, locker, guard.Config{Service: "shop", Publisher: &e.Events, EndTimeout: 2 * time.Second})
				wantNil(e.t, err)
				defer func() { wantNil(e.t, errors.Join(g.Close(bg), locker.Close(bg))) }()
				inside.Of(g).NoTurnLimit()
				e.create(&Stock{ID: 1, Left: 9})
				wantNil(e.t, g.Apply(bg, "sku:1", sale("first", false)()))
				answerAgain := e.silence(tt.table)
				all := buyers(4)
				cancels, answers := make([]context.CancelFunc, len(all)), make([]chan struct{}, len(all))
				wantNil(e.t, g.Do(bg, "sku:1", func(context.Context, *gorm.DB) error {
					for i, b := range all {
						ctx, cancel := context.WithCancel(bg)
						change, answer := b.sale(), make(chan struct{})
						cancels[i], answers[i] = cancel, answer
						go func() {
							defer close(answer)
							b.err = g.Apply(ctx, "sku:1", change, guard.Wait(time.Minute), guard.Combine())
						}()
						testwait.Until(e.t, "the buyer queues", func() bool { return inside.Of(g).Lines() == 1 && inside.Of(g).Queued("sku:1") == i })
					}
					return nil
				}))
				testwait.Until(e.t, "a statement gets no answer", func() bool { return e.silent() })
				for _, i := range tt.ended {
					cancels[i]()
					testwait.Until(e.t, fmt.Sprintf("buyer %d has an answer", i), func() bool { return isClosed(answers[i]) })
				}
				answerAgain()
				for i, b := range all {
					<-answers[i]
					cancels[i]()
					if ended := slices.Contains(tt.ended, i); ended != errors.Is(b.err, context.Canceled) || !ended && b.err != nil {
						e.t.Errorf("buyer %d got %v", i, b.err)
					}
				}
				wantNil(e.t, e.db.Where("no = ?", "first").Delete(&Order{}).Error)
				e.wantSold(all...)
				e.wantNoEvent()
				e.wantFree("sku:1")
			})
		})
	}
}

// silence keeps all statements on a table waiting, until again is called.
func (e *env) silence(table string) (again func()) {
	e.t.Helper()
	tx := e.open().Begin()
	lock := "LOCK TABLES " + table + " WRITE"
	if tx.Name() == "postgres" {
		lock = "LOCK TABLE " + table + " IN ACCESS EXCLUSIVE MODE"
	}
	wantNil(e.t, tx.Exec(lock).Error)
	again = sync.OnceFunc(func() {
		if tx.Name() == "mysql" {
			tx.Exec("UNLOCK TABLES")
		}
		tx.Rollback()
	})
	e.t.Cleanup(again)
	return again
}

// silent reports whether a statement is known to wait for a table: MySQL lists no sessions while
// one has bytes in its statement that are no text.
func (e *env) silent() bool {
	e.t.Helper()
	waiting := "SELECT count(*) FROM information_schema.processlist WHERE db = DATABASE() AND state LIKE 'Waiting for table%'"
	if e.db.Name() == "postgres" {
		waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
	}
	var n int
	if err := e.db.Raw(waiting).Scan(&n).Error; err != nil {
		e.t.Log(err)
		return false
	}
	return n > 0
}

func isClosed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

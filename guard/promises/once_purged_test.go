package promises_test

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/once"
)

// TestOncePurgedBetween: a request is purged before each packet of a repeat in turn, all of
// it or its answer alone. The repeat gets the answer, or is told that it is done, or runs:
// never an error of the database, and nobody is paged.
func TestOncePurgedBetween(t *testing.T) {
	t.Parallel()
	for name, dsn := range map[string]func(testing.TB) string{"mysql": teststack.MySQL, "postgres": teststack.Postgres} {
		for how, mark := range map[string]time.Duration{"marked": time.Minute, "not marked": -1} {
			for what, tables := range map[string][]string{"all of it": {"belay_answer", "belay_once"}, "the answer": {"belay_answer"}} {
				t.Run(fmt.Sprintf("%s, %s, %s", name, how, what), func(t *testing.T) {
					t.Parallel()
					e, k := linkedTo(t, dsn(t))
					wantNil(t, once.Migrate(bg, e.db))
					e.create(&Stock{ID: 1, Left: 1000})
					purges := 0
					for n, more := int64(1), true; more; n++ {
						var purged bool
						if more, purged = e.purgeBefore(k, n, mark, tables); purged {
							purges++
						}
					}
					if purges == 0 {
						t.Error("a transaction was in the way of each purge")
					}
					e.wantNoEvent()
				})
			}
		}
	}
}

// purgeBefore purges a request before packet n of its repeat, which is not marked where mark
// is negative. It reports whether there was such a packet, and whether no transaction was in
// the way of the purge.
func (e *env) purgeBefore(k *testdb.Link, n int64, mark time.Duration, tables []string) (more, purged bool) {
	e.t.Helper()
	r := request(fmt.Sprint("request ", n))
	first, err := guard.Once(bg, e.Guard.Guard, r, sells(1), guard.Remember(mark))
	wantNil(e.t, err)
	var packets atomic.Int64
	stop := k.Interrupt(func([]byte) {
		if packets.Add(1) == n {
			purged = e.purge(tables)
		}
	})
	got, err := guard.Once(bg, e.Guard.Guard, r, sells(1), guard.Remember(mark))
	stop()
	again := first.Value.Left - 1
	switch left := e.stock(1).Left; {
	case err == nil && got.Replayed && got.Value == first.Value && left == first.Value.Left:
	case err == nil && !got.Replayed && got.Value.Left == again && left == again && len(tables) == 2:
	case errors.Is(err, guard.ErrDuplicate) && left == first.Value.Left:
	default:
		e.t.Errorf("before packet %d: the repeat got %+v, %v, and %d are left of %d", n, got, err, left, first.Value.Left)
	}
	return packets.Load() >= n, purged
}

// purge deletes what the tables have of requests, unless a transaction is in the way.
func (e *env) purge(tables []string) bool {
	err := e.db.Transaction(func(tx *gorm.DB) error {
		for _, table := range tables {
			if err := tx.Exec("SELECT 1 FROM " + table + " FOR UPDATE NOWAIT").Error; err != nil {
				return err
			}
			if err := tx.Exec("DELETE FROM " + table).Error; err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		e.t.Logf("not purged: %v", err)
	}
	return err == nil
}

// TestOnceWhileItIsPurged: a repeat waits for the one that deletes its request.
func TestOnceWhileItIsPurged(t *testing.T) {
	t.Parallel()
	eachServer(t, func(e *env) {
		wantNil(t, once.Migrate(bg, e.db))
		e.create(&Stock{ID: 1, Left: 9})
		_, err := guard.Once(bg, e.Guard.Guard, request("a"), sells(1), guard.Remember(-1))
		wantNil(t, err)
		claims, begins := e.claims()
		purge := e.db.Begin()
		wantNil(t, purge.Exec("DELETE FROM belay_answer").Error)
		wantNil(t, purge.Exec("DELETE FROM belay_once").Error)
		repeat := make(chan error)
		go func() {
			got, err := guard.Once(bg, e.Peer(t, claims), request("a"), sells(1), guard.Remember(-1), guard.Wait(time.Minute))
			if err == nil && !got.Replayed && got.Value.Left != 7 {
				t.Errorf("the repeat got %+v", got)
			}
			repeat <- err
		}()
		<-begins
		wantNil(t, purge.Commit().Error)
		wantNil(t, <-repeat)
		e.wantNoEvent()
	})
}

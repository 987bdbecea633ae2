package guard_test

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

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
					for n, more := int64(1), true; more; n++ {
						more = e.purgeBefore(k, n, mark, tables)
					}
					e.wantNoEvent()
				})
			}
		}
	}
}

// purgeBefore purges a request before packet n of its repeat, which is not marked where mark
// is negative. It reports whether there was such a packet.
func (e *env) purgeBefore(k *testdb.Link, n int64, mark time.Duration, tables []string) bool {
	e.t.Helper()
	r := request(fmt.Sprint("request ", n))
	first, err := guard.Once(bg, e.Guard.Guard, r, sells(1), guard.Remember(mark))
	wantNil(e.t, err)
	var packets atomic.Int64
	stop := k.Interrupt(func([]byte) {
		if packets.Add(1) == n {
			for _, table := range tables {
				e.purge(table)
			}
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
	return packets.Load() >= n
}

// purge deletes what a table has of requests, unless a transaction is in the way.
func (e *env) purge(table string) {
	query := "SET STATEMENT innodb_lock_wait_timeout=0 FOR DELETE FROM " + table
	if e.db.Name() == "postgres" {
		query = "SET lock_timeout = '100ms'; DELETE FROM " + table
	}
	if err := e.db.Exec(query).Error; err != nil {
		e.t.Logf("not purged: %v", err)
	}
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

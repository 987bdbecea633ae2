package promises_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/guard/guardtest"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/notify"
	"github.com/belaygo/belay/once"
)

// shoppers are n buyers whose orders serve requests of their own.
func shoppers(n int) []*buyer {
	all := buyers(n)
	for i, b := range all {
		b.serves = printed(fmt.Sprint("id-", i), "one")
	}
	return all
}

// wantClaims checks how many requests are known.
func (e *env) wantClaims(n int64) {
	e.t.Helper()
	var got int64
	wantNil(e.t, e.db.Table("belay_once").Count(&got).Error)
	if got != n {
		e.t.Errorf("%d requests are known, want %d", got, n)
	}
}

// TestCombineRequests: the requests of a crew are stored in one statement. Those whose
// changes fail are not, and can be made again.
func TestCombineRequests(t *testing.T) {
	t.Parallel()
	each(t, func(e *env) {
		wantNil(e.t, once.Migrate(bg, e.db))
		e.create(&Stock{ID: 1, Left: 5})
		all := shoppers(8)
		e.sell(all...)
		for i, b := range all {
			if i < 5 {
				wantNil(e.t, b.err)
			} else {
				wantIs(e.t, b.err, errSoldOut)
			}
		}
		e.wantSold(all...)
		e.wantClaims(5)

		more := shoppers(8) // all sold out, or repeats
		e.sell(more...)
		for i, b := range more {
			if i < 5 {
				wantIs(e.t, b.err, guard.ErrDuplicate)
			} else {
				wantIs(e.t, b.err, errSoldOut)
			}
		}
		e.wantClaims(5)

		wantNil(e.t, e.db.Model(&Stock{ID: 1, Version: 6}).Update("left", 9).Error)
		inserts := e.inserts("belay_once")
		again := shoppers(8)[5:]
		e.sell(again...)
		for _, b := range again {
			wantNil(e.t, b.err)
		}
		if got := inserts(); got != 1 {
			e.t.Errorf("%d INSERTs of requests, want 1", got)
		}
		e.wantSold(append(all[:5:5], again...)...)
		e.wantClaims(8)
		e.wantNoEvent()
		e.wantFree("sku:1")
	})
}

// inserts counts the INSERTs into a table.
func (e *env) inserts(table string) func() int {
	e.t.Helper()
	var mu sync.Mutex
	n := 0
	wantNil(e.t, e.db.Callback().Create().After("gorm:create").Register("test:inserts "+table, func(tx *gorm.DB) {
		mu.Lock()
		defer mu.Unlock()
		if tx.Statement.Table == table {
			n++
		}
	}))
	return func() int {
		mu.Lock()
		defer mu.Unlock()
		return n
	}
}

// TestCombineRepeatedRequests: a request that is known already, or comes twice, takes
// effect once, whatever its caller changes, and takes nobody along.
func TestCombineRepeatedRequests(t *testing.T) {
	t.Parallel()
	each(t, func(e *env) {
		wantNil(e.t, once.Migrate(bg, e.db))
		e.create(&Stock{ID: 1, Left: 5})
		wantNil(e.t, e.Apply(bg, "sku:1", guard.Update(&Stock{ID: 1}, take), guard.For(printed("old", "one"))))
		all := shoppers(8)
		all[0].serves = printed("old", "one")
		all[2].serves = printed("old", "two")
		all[5].serves = all[3].serves
		all[6].serves = once.Request{} // some serve none
		e.sell(all...)
		for i, b := range all {
			switch i {
			case 0, 5:
				wantIs(e.t, b.err, guard.ErrDuplicate)
			case 2:
				wantIs(e.t, b.err, guard.ErrMismatch)
			case 7:
				wantIs(e.t, b.err, errSoldOut)
			default:
				wantNil(e.t, b.err)
			}
		}
		e.wantSold(all...)
		e.wantClaims(4)
		e.wantNoEvent()
	})
}

// TestCombineRepeatsNeedNoTransaction: repeats of requests that are known wait for no turn
// of their own, whether one of them leads or not.
func TestCombineRepeatsNeedNoTransaction(t *testing.T) {
	t.Parallel()
	each(t, func(e *env) {
		wantNil(e.t, once.Migrate(bg, e.db))
		e.create(&Stock{ID: 1, Left: 9})
		for _, repeats := range [][]int{{0, 1, 4}, {2, 3}, {0, 1, 2, 3, 4}} {
			all := shoppers(5)
			wantNil(e.t, e.db.Exec("DELETE FROM belay_once").Error)
			wantNil(e.t, e.db.Exec("DELETE FROM orders").Error)
			for _, i := range repeats {
				wantNil(e.t, e.Do(bg, "sku:1", func(context.Context, *gorm.DB) error { return nil }, guard.For(all[i].serves)))
			}
			before := e.transactions()
			e.sell(all...)
			if n := e.transactions() - before; n != 2 { // one of the operation behind which they queue
				e.t.Errorf("repeats %v: %d transactions, want 2", repeats, n)
			}
			for i, b := range all {
				if slices.Contains(repeats, i) {
					wantIs(e.t, b.err, guard.ErrDuplicate)
				} else {
					wantNil(e.t, b.err)
				}
			}
			e.wantClaims(5)
		}
		e.wantNoEvent()
		e.wantFree("sku:1")
	})
}

// TestCombineRequestServedElsewhere: those whose requests another caller has served while
// the crew had the lock are told, in one event, and nobody else; whether their own changes
// failed or not. A request that was served under another key says nothing about the lock.
func TestCombineRequestServedElsewhere(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		at    []int
		fails bool
		key   string
	}{
		"the leader's":               {at: []int{0}},
		"one of them":                {at: []int{2}},
		"two of them":                {at: []int{1, 3}},
		"one that is sold out":       {at: []int{2}, fails: true},
		"under another key":          {at: []int{2}, key: "sku:2"},
		"two under another key":      {at: []int{0, 3}, key: "sku:2"},
		"sold out under another key": {at: []int{2}, fails: true, key: "sku:2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachServer(t, func(e *env) {
				wantNil(e.t, once.Migrate(bg, e.db))
				e.create(&Stock{ID: 1, Left: 9}, &Stock{ID: 2, Left: 9})
				all := shoppers(5)
				rival := e.Peer(e.t, e.open())
				serve := func(key string) {
					for _, at := range c.at {
						wantNil(e.t, rival.Do(bg, key, takeOne(2), guard.For(all[at].serves)))
					}
				}
				var first sync.Once
				all[4].change = func(s *Stock) error { // after the crew has looked for its requests
					first.Do(func() {
						if c.key == "" {
							e.Forget("sku:1")
						}
						serve(cmp.Or(c.key, "sku:1"))
					})
					return take(s)
				}
				if c.fails {
					all[c.at[0]].change = func(*Stock) error { return errSoldOut }
				}
				e.sell(all...)
				for i, b := range all {
					switch {
					case !slices.Contains(c.at, i):
						wantNil(e.t, b.err)
					case c.key != "":
						wantIs(e.t, b.err, guard.ErrDuplicate)
					default:
						wantIs(e.t, b.err, guard.ErrIntercepted)
					}
				}
				if c.key != "" {
					e.wantNoEvent()
				} else if ev := e.wantEvent(notify.VerdictOverlap, notify.OutcomeRefused, "sku:1"); ev.Count != len(c.at) || ev.Table != "belay_once" {
					e.t.Errorf("the event counts %d, of %q", ev.Count, ev.Table)
				}
				e.wantSold(all...)
				e.wantClaims(5)
			})
		})
	}
}

// TestCombineRequestInProgress: the others do not fail for a request that another caller
// serves under another key.
func TestCombineRequestInProgress(t *testing.T) {
	t.Parallel()
	eachServer(t, func(e *env) {
		wantNil(e.t, once.Migrate(bg, e.db))
		e.create(&Stock{ID: 1, Left: 9}, &Stock{ID: 2, Left: 9})
		all := shoppers(4)
		finish := started(func(rest func()) error {
			return e.Peer(e.t, e.open()).Do(bg, "sku:2", func(ctx context.Context, tx *gorm.DB) error {
				rest()
				return takeOne(2)(ctx, tx)
			}, guard.For(all[1].serves))
		})
		var refused sync.Once
		wantNil(e.t, e.db.Callback().Create().After("gorm:create").Register("test:refused", func(tx *gorm.DB) {
			if tx.Error != nil {
				refused.Do(func() { wantNil(e.t, finish()) })
			}
		}))
		e.sell(all...)
		for i, b := range all {
			if i == 1 {
				wantIs(e.t, b.err, guard.ErrDuplicate)
			} else {
				wantNil(e.t, b.err)
			}
		}
		e.wantClaims(4)
		e.wantNoEvent()
	})
}

// TestCombineRequestsProveTheCommit: the answer to the COMMIT of a crew may be lost. What
// its requests show needs no lock.
func TestCombineRequestsProveTheCommit(t *testing.T) {
	t.Parallel()
	for name, executed := range map[string]bool{"executed": true, "not executed": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, k := linked(t)
			wantNil(t, once.Migrate(bg, e.db))
			e.create(&Stock{ID: 1, Left: 9})
			all := shoppers(3)
			cut := map[bool]*atomic.Bool{true: &k.After, false: &k.Before}[executed]
			all[2].change = func(s *Stock) error {
				cut.Store(true)
				e.Forget("sku:1")
				return take(s)
			}
			e.sell(all...)
			cut.Store(false)
			for _, b := range all {
				if executed && b.err != nil || !executed && (b.err == nil || errors.Is(b.err, guard.ErrUnknown)) {
					t.Errorf("executed is %t, a caller got %v", executed, b.err)
				}
			}
			if left := e.stock(1).Left; executed && left != 6 || !executed && left != 9 {
				t.Errorf("%d are left", left)
			}
		})
	}
}

// TestCombineRequestsRunAgain: a deadlock at the requests of a crew costs nobody anything.
func TestCombineRequestsRunAgain(t *testing.T) {
	t.Parallel()
	each(t, func(e *env) {
		wantNil(e.t, once.Migrate(bg, e.db))
		e.create(&Stock{ID: 1, Left: 100})
		met := 0
		wantNil(e.t, e.db.Callback().Create().Before("gorm:create").Register("test:deadlock", func(tx *gorm.DB) {
			if tx.Statement.Table == "belay_once" && met < 2 {
				met++
				_ = tx.AddError(errDeadlock)
			}
		}))
		all := shoppers(5)
		e.sell(all...)
		for _, b := range all {
			wantNil(e.t, b.err)
		}
		if s := e.stock(1); s.Left != 95 || s.Version != dbguard.Version(6) {
			e.t.Errorf("the stock is %+v", s)
		}
		e.wantSold(all...)
		e.wantClaims(5)
		e.wantNoEvent()
	})
}

// TestCombineUnderTheRequestsKey: the key of a request excludes its repeats and nobody
// else, so its caller runs alone.
func TestCombineUnderTheRequestsKey(t *testing.T) {
	t.Parallel()
	withOnce(t, func(e *env) {
		r := request("a")
		change := guard.Update(&Stock{ID: 1}, take)
		opts := []guard.Option{guard.For(r), guard.Also("sku:1"), guard.Combine(), guard.Wait(time.Minute)}
		wantNil(e.t, e.Apply(bg, r.Key(), change, opts...))
		wantIs(e.t, e.Apply(bg, r.Key(), change, opts...), guard.ErrDuplicate)
		e.wantTaken(1)
	})
}

// TestCombineRequestAgain: a request that a crew has not served can be made again alone,
// without a warning.
func TestCombineRequestAgain(t *testing.T) {
	t.Parallel()
	each(t, func(e *env) {
		wantNil(e.t, once.Migrate(bg, e.db))
		e.create(&Stock{ID: 1, Left: 9})
		var log bytes.Buffer
		locker, err := lock.New(e.Engine(), lock.Config{})
		wantNil(e.t, err)
		e.t.Cleanup(func() { _ = locker.Close(bg) })
		g, err := guard.New(e.db, locker, guard.Config{Service: "s", Publisher: &e.Events, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		wantNil(e.t, err)
		e.Guard.Guard = g
		all := shoppers(3)
		all[1].change = func(*Stock) error { return errSoldOut }
		e.sell(all...)
		wantIs(e.t, all[1].err, errSoldOut)
		wantNil(e.t, e.Apply(bg, "sku:1", guard.Update(&Stock{ID: 1}, take), guard.For(all[1].serves)))
		if log.Len() > 0 {
			e.t.Error(log.String())
		}
	})
}

// TestCombineRequestsHideNoOverlap: the row of all, and those that members insert, are
// judged as without requests. A request that is served under another key is no overlap.
func TestCombineRequestsHideNoOverlap(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		takes   bool
		rival   func(e *env, all []*buyer) error
		met     []int
		again   []int  // who repeat a request besides
		overlap string // its table
		lost    bool
	}{
		"of the row of all": {
			takes: true,
			rival: func(e *env, _ []*buyer) error {
				return e.db.Model(&Stock{}).Where("id = 1").UpdateColumn("version", gorm.Expr("version + 1")).Error
			},
			met:     []int{0, 1, 2, 3},
			overlap: "stocks",
		},
		"of a row that one inserts": {
			rival:   func(e *env, all []*buyer) error { return e.open().Create(&Order{No: all[2].order.No}).Error },
			met:     []int{2},
			overlap: "orders",
		},
		"of a request": {
			takes: true,
			rival: func(e *env, all []*buyer) error {
				return e.Peer(e.t, e.open()).Do(bg, "sku:2", takeOne(2), guard.For(all[2].serves))
			},
			met: []int{2},
		},
		"of a request while the lock is lost": {
			takes: true,
			rival: func(e *env, all []*buyer) error {
				e.Forget("sku:1")
				return e.Peer(e.t, e.open()).Do(bg, "sku:2", takeOne(2), guard.For(all[2].serves))
			},
			met:  []int{2},
			lost: true,
		},
		"of a request under the same key": {
			takes: true,
			rival: func(e *env, all []*buyer) error { // whose locks are elsewhere
				return guardtest.New(e.t, e.open()).Do(bg, "sku:1", takeOne(2), guard.For(all[2].serves))
			},
			met:     []int{2},
			overlap: "belay_once",
		},
		"of two requests, one of them under another key": {
			takes: true,
			rival: func(e *env, all []*buyer) error {
				e.Forget("sku:1")
				for i, key := range []string{1: "sku:2", 2: "sku:1"} {
					if key != "" {
						wantNil(e.t, e.Peer(e.t, e.open()).Do(bg, key, takeOne(2), guard.For(all[i].serves)))
					}
				}
				return nil
			},
			met:     []int{2},
			again:   []int{1},
			overlap: "belay_once",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachServer(t, func(e *env) {
				wantNil(e.t, once.Migrate(bg, e.db))
				e.create(&Stock{ID: 1, Left: 9}, &Stock{ID: 2, Left: 9})
				all := shoppers(4)
				for _, b := range all {
					b.takes, b.only = c.takes, !c.takes
				}
				var first sync.Once
				rival := func() { first.Do(func() { wantNil(e.t, c.rival(e, all)) }) }
				all[3].change = func(s *Stock) error { rival(); return take(s) }
				wantNil(e.t, e.db.Callback().Create().Before("gorm:create").Register("test:rival", func(tx *gorm.DB) {
					if tx.Statement.Table == "orders" {
						rival()
					}
				}))
				e.sell(all...)
				for i, b := range all {
					switch {
					case slices.Contains(c.again, i), slices.Contains(c.met, i) && c.overlap == "":
						wantIs(e.t, b.err, guard.ErrDuplicate)
					case !slices.Contains(c.met, i):
						wantNil(e.t, b.err)
					default:
						wantIs(e.t, b.err, guard.ErrIntercepted)
					}
				}
				if c.lost {
					e.wantEvent(notify.VerdictLost, notify.OutcomeRefused, "sku:1")
				} else if c.overlap == "" {
					e.wantNoEvent()
				} else if ev := e.wantEvent(notify.VerdictOverlap, notify.OutcomeRefused, "sku:1"); ev.Count != len(c.met) || ev.Table != c.overlap {
					e.t.Errorf("the event counts %d, of %q", ev.Count, ev.Table)
				}
			})
		})
	}
}

// TestCombineRequestServedSinceTheSnapshot: a MariaDB may refuse the whole statement for a
// request that was served since the snapshot. Who is met is known all the same.
func TestCombineRequestServedSinceTheSnapshot(t *testing.T) {
	t.Parallel()
	dsn := teststack.MySQL(t)
	var version string
	wantNil(t, testdb.OpenMySQL(t, dsn).Raw("SELECT VERSION()").Scan(&version).Error)
	if !strings.Contains(version, "MariaDB") {
		t.Skip("MySQL has no innodb_snapshot_isolation")
	}
	db := testdb.OpenMySQL(t, dsn+"&innodb_snapshot_isolation=1")
	wantNil(t, db.AutoMigrate(&Order{}, &Stock{}))
	wantNil(t, once.Migrate(bg, db))
	e := &env{t: t, db: db, Guard: guardtest.New(t, db)}
	e.create(&Stock{ID: 1, Left: 9}, &Stock{ID: 2, Left: 9})
	all := shoppers(5)
	rival := e.Peer(t, testdb.OpenMySQL(t, dsn))
	var first sync.Once
	all[4].change = func(s *Stock) error {
		first.Do(func() {
			e.Forget("sku:1")
			wantNil(t, rival.Do(bg, "sku:1", takeOne(2), guard.For(all[2].serves)))
		})
		return take(s)
	}
	e.sell(all...)
	for i, b := range all {
		if i == 2 {
			wantIs(t, b.err, guard.ErrIntercepted)
		} else {
			wantNil(t, b.err)
		}
	}
	if ev := e.wantEvent(notify.VerdictOverlap, notify.OutcomeRefused, "sku:1"); ev.Count != 1 || ev.Table != "belay_once" {
		t.Errorf("the event counts %d, of %q", ev.Count, ev.Table)
	}
	e.wantSold(all...)
	e.wantClaims(5)
}

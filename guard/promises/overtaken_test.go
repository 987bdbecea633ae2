package promises_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/guard/guardtest"
	"github.com/belaygo/belay/internal/dbtx"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/notify"
	"github.com/belaygo/belay/once"
)

// lateHolder returns a function that commits change on a holder of key which has lost the
// lock without notice, long before: another caller can have the lock.
func (e *env) lateHolder(key string, change guard.Change) (commit func()) {
	e.t.Helper()
	begun, goOn, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	peer := e.Peer(e.t, e.open())
	go func() {
		done <- peer.Do(bg, key, func(ctx context.Context, tx *gorm.DB) error {
			close(begun)
			<-goOn
			return change.Run(ctx, tx)
		})
	}()
	<-begun
	if !e.Forget(key) {
		e.t.Errorf("key %q is not locked", key)
	}
	commit = sync.OnceFunc(func() {
		close(goOn)
		if err := <-done; err != nil {
			e.t.Errorf("the late holder failed: %v", err)
		}
	})
	e.t.Cleanup(commit)
	return commit
}

// beforeWrite calls f with the number of the write, from 1, before each write of the
// instance's own operations to a table.
func (e *env) beforeWrite(table string, f func(n int)) {
	e.t.Helper()
	var mu sync.Mutex
	n := 0
	hook := func(tx *gorm.DB) {
		if tx.Statement.Table == table {
			mu.Lock()
			defer mu.Unlock()
			n++
			f(n)
		}
	}
	cb := e.db.Callback()
	wantNil(e.t, errors.Join(
		cb.Create().Before("gorm:create").Replace("test:overtake", hook),
		cb.Update().Before("gorm:update").Replace("test:overtake", hook)))
}

func (e *env) prepareBeforeWrite() {
	e.t.Helper()
	nop := func(*gorm.DB) {}
	cb := e.db.Callback()
	wantNil(e.t, errors.Join(
		cb.Create().Before("gorm:create").Register("test:overtake", nop),
		cb.Update().Before("gorm:update").Register("test:overtake", nop)))
}

// sale returns changes that insert an order and take one of the stock 1.
func sale(no string, updateFirst bool) func() guard.Change {
	return func() guard.Change {
		insert, update := guard.Insert(&Order{No: no}), guard.Update(&Stock{ID: 1}, take)
		if updateFirst {
			return guard.All(update, insert)
		}
		return guard.All(insert, update)
	}
}

// TestOvertakenIsMadeAgain: while a caller has the lock, a holder that has lost it commits.
// The caller's lock is well, so its change is made after all, or its request is a repeat. The
// one event is that of the late holder.
func TestOvertakenIsMadeAgain(t *testing.T) {
	const key = "sku:1"
	stock := func() guard.Change { return guard.Update(&Stock{ID: 1}, take) }
	stocks := func(one, two dbguard.Version) func() guard.Change {
		return func() guard.Change {
			return guard.All(guard.Update(&Stock{ID: 1, Version: one}, take), guard.Update(&Stock{ID: 2, Version: two}, take))
		}
	}
	order := func(no string) func() guard.Change {
		return func() guard.Change { return guard.Insert(&Order{No: no}) }
	}
	tests := map[string]struct {
		change func() guard.Change
		late   func() guard.Change
		table  string // the late holder commits before the first write to it
		opts   []guard.Option
		want   error
		sold   int // from the stock 1, by both
	}{
		"another request, update first":  {change: sale("b", true), late: sale("a", false), table: "stocks", sold: 2},
		"another request, insert first":  {change: sale("b", false), late: sale("a", false), table: "orders", sold: 2},
		"the same request, update first": {change: sale("a", true), late: order("a"), table: "orders", want: guard.ErrDuplicate},
		"the same request, insert first": {change: sale("a", false), late: sale("a", false), table: "orders", want: guard.ErrDuplicate, sold: 1},
		"one of two rows":                {change: stocks(0, 0), late: stock, table: "stocks", sold: 2},
		"beside a row with a version":    {change: stocks(0, 1), late: stock, table: "stocks", sold: 2},
		"a row with a version":           {change: stocks(1, 0), late: stock, table: "stocks", want: guard.ErrStale, sold: 1},
		"for a request of its own": {change: sale("b", false), late: sale("a", false), table: "orders", sold: 2,
			opts: []guard.Option{guard.For(request("b"))}},
	}
	eachServer(t, func(e *env) {
		wantNil(e.t, once.Migrate(bg, e.db))
		e.prepareBeforeWrite()
		for name, tt := range tests {
			e.anew(name, func(e *env) {
				e.create(&Stock{ID: 1, Left: 9}, &Stock{ID: 2, Left: 9})
				commit := e.lateHolder(key, tt.late())
				e.beforeWrite(tt.table, func(int) { commit() })
				err := e.Apply(bg, key, tt.change(), tt.opts...)
				if !errors.Is(err, tt.want) {
					e.t.Errorf("the caller that has the lock got %v, want %v", err, tt.want)
				}
				if s := e.stock(1); s.Left != 9-tt.sold {
					e.t.Errorf("left %d, want %d", s.Left, 9-tt.sold)
				}
				e.wantEvent(notify.VerdictLost, notify.OutcomeCommitted, key)
				e.wantFree(key)
			})
		}
	})
}

// anew runs f as a test of its own, on the same database without its rows.
func (e *env) anew(name string, f func(e *env)) {
	e.t.Helper()
	e.t.Run(name, func(t *testing.T) {
		wantNil(t, errors.Join(e.db.Where("1 = 1").Delete(&Order{}).Error, e.db.Where("1 = 1").Delete(&Stock{}).Error))
		e.beforeWrite("no table", nil)
		f(&env{Guard: guardtest.New(t, e.db), t: t, db: e.db, open: e.open})
	})
}

// rival takes one of the stock 1 under a key of its own.
func (e *env) rival() func() {
	e.t.Helper()
	peer := e.Peer(e.t, e.open())
	return func() {
		if err := peer.Apply(bg, "rival", guard.Update(&Stock{ID: 1}, take)); err != nil {
			e.t.Errorf("the rival failed: %v", err)
		}
	}
}

// wantOvertaken checks the error of a caller that may retry at once.
func wantOvertaken(t *testing.T, err error) {
	t.Helper()
	wantIs(t, err, guard.ErrBusy)
	if _, ok := errors.AsType[*dbguard.ConflictError](err); !ok || guard.ResultOf(err) != "busy" {
		t.Errorf("the result of %v is %s, want busy, and a conflict inside", err, guard.ResultOf(err))
	}
}

// TestOvertakenAgainAndAgain: an operation that is overtaken in each attempt, or must not be
// run again, has changed nothing, and its caller gets ErrBusy.
func TestOvertakenAgainAndAgain(t *testing.T) {
	tests := map[string]struct {
		custom    bool
		opts      []guard.Option
		rivals    int
		overtaken float64
		done      bool
	}{
		"a change, at last":          {rivals: 3, overtaken: 3, done: true},
		"a change, each time":        {rivals: 100, overtaken: 4},
		"an operation":               {custom: true, rivals: 1, overtaken: 1},
		"one that may be run again":  {custom: true, rivals: 1, overtaken: 1, opts: []guard.Option{guard.Retries(1)}, done: true},
		"one that is too often late": {custom: true, rivals: 2, overtaken: 2, opts: []guard.Option{guard.Retries(1)}},
	}
	eachServer(t, func(e *env) {
		e.prepareBeforeWrite()
		for name, tt := range tests {
			e.anew(name, func(e *env) {
				e.create(&Stock{ID: 1, Left: 9})
				overtake := e.rival()
				e.beforeWrite("stocks", func(n int) {
					if n <= tt.rivals {
						overtake()
					}
				})
				g := e.Peer(e.t, e.db)
				change := sale("b", false)()
				var err error
				if tt.custom {
					err = g.Do(bg, "sku:1", change.Run, tt.opts...)
				} else {
					err = g.Apply(bg, "sku:1", change)
				}
				sold := int(tt.overtaken)
				if tt.done {
					sold++
					wantNil(e.t, err)
				} else {
					wantOvertaken(e.t, err)
				}
				if s, n := e.stock(1), e.count(&Order{}); s.Left != 9-sold || (n == 1) != tt.done {
					e.t.Errorf("left %d with %d orders, want %d left", s.Left, n, 9-sold)
				}
				wantMetrics(e.t, g, map[string]float64{"overtaken_total": tt.overtaken, "unjudged_total": 0})
				e.wantNoEvent()
			})
		}
	})
}

// watching calls a function at the end of each attempt. ctx ends with the attempt's lease.
type watching struct {
	ended func(ctx context.Context)
}

func (w watching) Start(ctx context.Context, step guard.Step, _ string) (context.Context, func(error)) {
	if step != guard.StepTransaction {
		return ctx, func(error) {}
	}
	return ctx, func(error) { w.ended(ctx) }
}

func (watching) Trace(context.Context) notify.Trace { return notify.Trace{} }

// TestOvertakenAndLost: a caller was overtaken while its lock was well, and then its lock is
// lost, too. That is one event, which names the row: an overlap, unless the second attempt
// was committed, or may have been.
func TestOvertakenAndLost(t *testing.T) {
	const key = "sku:1"
	tests := map[string]struct {
		between bool // the two attempts; otherwise in the second
		notices bool // the caller does, before it writes
		want    error
		verdict notify.Verdict
		outcome notify.Outcome
	}{
		"before the second attempt": {between: true, want: guard.ErrIntercepted, verdict: notify.VerdictOverlap, outcome: notify.OutcomeRefused},
		"in the second attempt":     {notices: true, want: guard.ErrLost, verdict: notify.VerdictOverlap, outcome: notify.OutcomeRefused},
		"unnoticed":                 {verdict: notify.VerdictLost, outcome: notify.OutcomeCommitted},
	}
	eachServer(t, func(e *env) {
		e.prepareBeforeWrite()
		for name, tt := range tests {
			e.anew(name, func(e *env) {
				e.create(&Stock{ID: 1, Left: 9})
				overtake, attempts := e.rival(), 0
				cfg := lock.Config{TTL: time.Second}
				if !tt.between && !tt.notices {
					cfg = lock.Config{}
				}
				locker, err := lock.New(e.Engine(), cfg)
				wantNil(e.t, err)
				observer := watching{func(ctx context.Context) {
					if attempts++; attempts == 1 && tt.between {
						e.Forget(key)
						<-ctx.Done()
					}
				}}
				g, err := guard.New(e.db, locker, guard.Config{Service: "short", Publisher: &e.Events, Observer: observer})
				wantNil(e.t, err)
				defer func() { wantNil(e.t, errors.Join(g.Close(bg), locker.Close(bg))) }()
				var held context.Context
				e.beforeWrite("stocks", func(n int) {
					switch {
					case n == 1:
						overtake()
					case tt.notices:
						e.Forget(key)
						<-held.Done()
					default:
						e.Forget(key)
					}
				})
				err = g.Do(bg, key, func(ctx context.Context, tx *gorm.DB) error {
					held = ctx //nolint:fatcontext // of the attempt that runs
					return sale("b", false)().Run(ctx, tx)
				}, guard.Retries(1))
				if !errors.Is(err, tt.want) {
					e.t.Errorf("the caller got %v, want %v", err, tt.want)
				}
				if ev := e.wantEvent(tt.verdict, tt.outcome, key); ev.Table != "stocks" || ev.Versions == nil || ev.Loss == "" {
					e.t.Errorf("the event is %+v, want the row that was changed", ev)
				}
			})
		}
	})
}

// TestOvertakenThenUnknown: the outcome of the second attempt counts, and its one event
// names the row at which the first one was overtaken.
func TestOvertakenThenUnknown(t *testing.T) {
	dsn := teststack.MySQL(t)
	direct := testdb.OpenMySQL(t, dsn)
	wantNil(t, direct.AutoMigrate(&Stock{}))
	wantNil(t, direct.Create(&[]Stock{{ID: 1, Left: 9}, {ID: 2, Left: 9}}).Error)
	k := testdb.NewLink(t, testdb.AddrOf(t, dsn))
	db := testdb.OpenMySQL(t, k.Through(t, dsn))
	e := &env{t: t, db: db, Guard: guardtest.New(t, db), open: func(...gorm.Option) *gorm.DB { return direct }}
	e.prepareBeforeWrite()
	overtake := e.rival()
	e.beforeWrite("stocks", func(n int) {
		if n == 1 {
			overtake()
			k.After.Store(true) // the COMMIT to come is executed, and its answer is lost
		}
	})
	err := e.Apply(bg, "sku:1", guard.All(guard.Update(&Stock{ID: 1}, take), guard.Update(&Stock{ID: 2}, take)))
	k.After.Store(false)
	wantIs(t, err, guard.ErrUnknown)
	if ev := e.wantEvent(notify.VerdictUnknownCommit, notify.OutcomeUnknown, "sku:1"); ev.Table != "stocks" {
		t.Errorf("the event is %+v, want the row that was changed", ev)
	}
}

// TestOvertakenCrew: callers that share a transaction are overtaken together, and make their
// changes again together. If that does not help, each tries for itself.
func TestOvertakenCrew(t *testing.T) {
	tests := map[string]struct{ rivals int }{"once": {1}, "each time": {1000}}
	eachServer(t, func(e *env) {
		e.prepareBeforeWrite()
		for name, tt := range tests {
			e.anew(name, func(e *env) {
				e.create(&Stock{ID: 1, Left: 1000})
				overtake, writes := e.rival(), 0
				e.beforeWrite("stocks", func(n int) {
					if writes = n; n <= tt.rivals {
						overtake()
					}
				})
				all := buyers(4)
				e.sell(all...)
				for i, b := range all {
					if tt.rivals == 1 && b.err != nil || tt.rivals > 1 && !errors.Is(b.err, guard.ErrBusy) {
						e.t.Errorf("buyer %d got %v", i, b.err)
					}
				}
				e.wantSold(all...)
				e.wantNoEvent()
				if s := e.stock(1); tt.rivals == 1 && s.Left != 1000-1-len(all) || tt.rivals > 1 && s.Left != 1000-writes {
					e.t.Errorf("left %d after %d writes of the sellers", s.Left, writes)
				}
			})
		}
	})
}

// TestTransfersUnderOneKey: services that lock two accounts by the key of one of them write
// rows of each other's keys. Their locks are well, so nothing is reported. A transfer that is
// overtaken in each attempt gets ErrBusy.
func TestTransfersUnderOneKey(t *testing.T) {
	eachServer(t, func(e *env) {
		const accounts, clients, transfers, money = 4, 4, 8, 1000
		for id := range int64(accounts) {
			e.create(&Stock{ID: id + 1, Left: money})
		}
		pay := func(s *Stock) error { s.Left--; return nil }
		get := func(s *Stock) error { s.Left++; return nil }
		guards := []*guard.Guard{e.Guard.Guard, e.Peer(e.t, e.open())}
		var all sync.WaitGroup
		for c := range clients {
			all.Go(func() {
				for i := range transfers {
					from, to := int64((c+i)%accounts+1), int64((c+3*i+1)%accounts+1)
					if from == to {
						continue
					}
					err := guards[c%2].Apply(bg, fmt.Sprint("account:", from),
						guard.All(guard.Update(&Stock{ID: from}, pay), guard.Update(&Stock{ID: to}, get)), guard.Wait(time.Minute))
					if err != nil && !errors.Is(err, guard.ErrBusy) && !dbtx.Retryable(err) {
						e.t.Errorf("a transfer ended with %v", err)
					}
				}
			})
		}
		all.Wait()
		sum := 0
		for id := range int64(accounts) {
			sum += e.stock(id + 1).Left
		}
		if sum != accounts*money {
			e.t.Errorf("the accounts have %d, want %d", sum, accounts*money)
		}
		e.wantNoEvent()
	})
}

// TestOvertakenAtAnyIsolation: where the database refuses the write of a row that has changed
// since the snapshot, nothing else comes of it.
func TestOvertakenAtAnyIsolation(t *testing.T) {
	for name, server := range map[string]struct {
		dsn      func(testing.TB) string
		open     func(testing.TB, string, ...gorm.Option) *gorm.DB
		settings []string
	}{
		"postgres": {teststack.Postgres, testdb.OpenPostgres, []string{"&default_transaction_isolation=serializable",
			"&default_transaction_isolation=repeatable%20read", "&default_transaction_isolation=read%20committed"}},
		"mysql": {teststack.MySQL, testdb.OpenMySQL, []string{"&innodb_snapshot_isolation=ON", "&innodb_snapshot_isolation=OFF"}},
	} {
		t.Run(name, func(t *testing.T) {
			dsn := server.dsn(t)
			direct := server.open(t, dsn)
			wantNil(t, direct.AutoMigrate(&Order{}, &Stock{}))
			if name == "mysql" && direct.Exec("SELECT @@innodb_snapshot_isolation").Error != nil {
				t.Skip("the server has no such setting")
			}
			for i, setting := range server.settings {
				db := server.open(t, dsn+setting)
				e := &env{t: t, db: db, Guard: guardtest.New(t, db), open: func(...gorm.Option) *gorm.DB { return direct }}
				e.prepareBeforeWrite()
				overtake := e.rival()
				for j, updateFirst := range []bool{true, false} {
					wantNil(t, direct.Where("1 = 1").Delete(&Stock{}).Error)
					e.create(&Stock{ID: 1, Left: 9})
					e.beforeWrite("stocks", func(n int) {
						if n == 1 {
							overtake()
						}
					})
					if err := e.Apply(bg, "sku:1", sale(fmt.Sprint(i, j), updateFirst)()); err != nil {
						t.Errorf("%s: %v", setting, err)
					}
					if s := e.stock(1); s.Left != 7 {
						t.Errorf("%s: left %d, want 7", setting, s.Left)
					}
				}
				e.wantNoEvent()
			}
		})
	}
}

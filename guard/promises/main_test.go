// Package promises tests what package guard promises to its users, by what that exports, on each
// database and behind the faults that docs/guarantees.md lists. The tests of what guard does not
// export are beside its code: they compile in a moment.
package promises_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"
	"gorm.io/gorm"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/guard/guardtest"
	"github.com/belaygo/belay/guard/internal/inside"
	"github.com/belaygo/belay/internal/dbtx/pipeline"
	"github.com/belaygo/belay/internal/dbtx/pipeline/pgxpipe"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/notify"
)

func TestMain(m *testing.M) {
	if beChild() {
		return
	}
	teststack.Quiet()
	if os.Getenv("BELAY_PIPELINE") != "" { // as in programs that import guard/pgxguard
		pipeline.Register(pgxpipe.Of)
	}
	goleak.VerifyTestMain(m,
		// gorm's cache of prepared statements has a goroutine that nothing stops.
		goleak.IgnoreAnyFunction("gorm.io/gorm/internal/lru.NewLRU[...].func1"),
		// A query that has panicked never ends for database/sql.
		goleak.IgnoreAnyFunction("github.com/belaygo/belay/internal/sqlconn.Discard"),
		// A client of Redis that was closed tries a dead node once more, after a second.
		goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial"),
	)
}

type Order struct {
	ID     uint
	No     string  `gorm:"size:64;uniqueIndex"`
	Email  *string `gorm:"size:64;uniqueIndex"`
	Amount int
}

type Stock struct {
	ID      int64
	Left    int
	Version dbguard.Version
}

// env is one instance of a service and its database.
type env struct {
	*guardtest.Guard
	t    *testing.T
	db   *gorm.DB
	open func(...gorm.Option) *gorm.DB
}

// inside shows the Guard.
func (e *env) inside() inside.View { return inside.Of(e.Guard.Guard) }

// each runs f on every database.
func each(t *testing.T, f func(e *env), opts ...gorm.Option) {
	testdb.EachWithPostgres(t, func(t *testing.T, open func(...gorm.Option) *gorm.DB) {
		db := open(opts...)
		if err := db.AutoMigrate(&Order{}, &Stock{}); err != nil {
			t.Fatal(err)
		}
		f(&env{Guard: guardtest.New(t, db), t: t, db: db, open: open})
	})
}

// onSameDatabase runs f as a test of its own, on the database of e without its rows. Its pool is new,
// and closed with the test of e.
func (e *env) onSameDatabase(name string, f func(e *env)) {
	e.t.Helper()
	e.t.Run(name, func(t *testing.T) {
		db := e.open()
		wantNil(t, errors.Join(db.Where("1 = 1").Delete(&Order{}).Error, db.Where("1 = 1").Delete(&Stock{}).Error))
		f(&env{Guard: guardtest.New(t, db), t: t, db: db, open: e.open})
	})
}

// onSQLite returns an instance on a database of its own, for what no database does.
func onSQLite(t *testing.T) *env {
	db := testdb.OpenSQLite(t, filepath.Join(t.TempDir(), "test.db"))
	wantNil(t, db.AutoMigrate(&Order{}, &Stock{}))
	return &env{Guard: guardtest.New(t, db), t: t, db: db}
}

// eachServer runs f on every database that lets two transactions write at once.
// On PostgreSQL only a row that is protected from the beginning is known from then
// on.
func eachServer(t *testing.T, f func(e *env), opts ...gorm.Option) {
	each(t, func(e *env) {
		if e.db.Name() != "sqlite" {
			f(e)
		}
	}, opts...)
}

// mysqlOnly runs f on MySQL.
func mysqlOnly(t *testing.T, f func(e *env), opts ...gorm.Option) {
	each(t, func(e *env) {
		if e.db.Name() == "mysql" {
			f(e)
		}
	}, opts...)
}

func (e *env) count(model any) int64 {
	e.t.Helper()
	var n int64
	if err := e.db.Model(model).Count(&n).Error; err != nil {
		e.t.Fatal(err)
	}
	return n
}

func (e *env) stock(id int64) Stock {
	e.t.Helper()
	return e.stockIn(e.db, id)
}

func (e *env) stockIn(db *gorm.DB, id int64) Stock {
	e.t.Helper()
	var s Stock
	if err := db.Take(&s, id).Error; err != nil {
		e.t.Fatal(err)
	}
	return s
}

func (e *env) create(rows ...any) {
	e.t.Helper()
	for _, row := range rows {
		if err := e.db.Create(row).Error; err != nil {
			e.t.Fatal(err)
		}
	}
}

// tryCreate creates a row that may be refused: in a savepoint, where a transaction
// takes nothing else after that.
func tryCreate(tx *gorm.DB, row any) error {
	create := func(tx *gorm.DB) error { return tx.Create(row).Error }
	if tx.Name() == "postgres" {
		return tx.Transaction(create)
	}
	return create(tx)
}

// wantNoEvent checks that nothing was reported.
func (e *env) wantNoEvent() {
	e.t.Helper()
	if got := e.Events.All(); len(got) != 0 {
		e.t.Errorf("events = %+v, want none", got)
	}
}

// wantEvent checks that just one event was reported, and what it says.
func (e *env) wantEvent(v notify.Verdict, o notify.Outcome, key string) notify.Event {
	e.t.Helper()
	got := e.Events.All()
	if len(got) != 1 {
		e.t.Fatalf("%d events, want 1: %+v", len(got), got)
	}
	ev := got[0]
	if ev.Verdict != v || ev.Outcome != o || ev.Key != key {
		e.t.Errorf("event is %s, %s of %q, want %s, %s of %q", ev.Verdict, ev.Outcome, ev.Key, v, o, key)
	}
	if err := ev.Validate(); err != nil {
		e.t.Errorf("event: %v", err)
	}
	return ev
}

// wantFree checks that the key can be locked and the pool can be used.
func (e *env) wantFree(key string) {
	e.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := e.Do(ctx, key, func(_ context.Context, tx *gorm.DB) error {
		return tx.Exec("SELECT 1").Error
	}); err != nil {
		e.t.Errorf("key %q is not free: %v", key, err)
	}
}

func wantIs(t *testing.T, err, target error) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Fatalf("error is %v, want %v", err, target)
	}
}

func wantNil(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

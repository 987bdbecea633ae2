// Package wild tests models, settings and habits as services have them, on every
// database. [TestModelsInTheWild] is a table of kinds and says for each of them what
// a first write, a repeat, an overlap and a business conflict come to. The other tests
// show one verdict each that is easy to get wrong.
package wild

import (
	"context"
	"fmt"
	"path"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"gorm.io/gorm"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/guard/guardtest"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/lockengine"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// gorm's cache of prepared statements has a goroutine that nothing stops.
		goleak.IgnoreAnyFunction("gorm.io/gorm/internal/lru.NewLRU[...].func1"),
	)
}

var bg = context.Background()

// Counted is what a model with updates has.
type Counted struct {
	Amount  int
	Version dbguard.Version
}

// Row is that, and an id.
type Row struct {
	ID uint
	Counted
}

type Stock struct {
	ID      int64
	Name    string `gorm:"size:64"`
	Amount  int
	Version dbguard.Version
}

type Account struct {
	ID      uint
	Email   string `gorm:"size:64;uniqueIndex"`
	Name    string `gorm:"size:64"`
	Version dbguard.Version
}

type Parent struct {
	ID       uint
	Name     string `gorm:"size:64"`
	Amount   int
	Children []Child
	Version  dbguard.Version
}

type Child struct {
	ID       uint
	ParentID uint
	Name     string `gorm:"size:64"`
	Version  dbguard.Version
}

// env is one instance of a service, another one, and their database.
type env struct {
	*guardtest.Guard
	t        *testing.T
	database string // mysql, mysql9, mariadb11, sqlite or postgres
	open     func(...gorm.Option) *gorm.DB
	db       *gorm.DB
	peer     *guard.Guard
}

// each runs f on every database.
func each(t *testing.T, f func(e *env), opts ...gorm.Option) {
	on(t, "mysql postgres sqlite", f, opts...)
}

// on runs f on the databases that are named: a kind, mysql (which MariaDB is as well),
// postgres or sqlite, or one server, as mysql9.
func on(t *testing.T, names string, f func(e *env), opts ...gorm.Option) {
	testdb.EachWithPostgres(t, func(t *testing.T, open func(...gorm.Option) *gorm.DB) {
		if database := path.Base(t.Name()); among(database, names) {
			f(newEnv(t, database, open, opts...))
		}
	})
}

func newEnv(t *testing.T, database string, open func(...gorm.Option) *gorm.DB, opts ...gorm.Option) *env {
	e := &env{t: t, database: database, open: open, db: open(opts...)}
	e.Guard = guardtest.New(t, e.db)
	e.peer = e.Peer(t, open(opts...))
	if database == "mysql" && testdb.SnapshotIsolation(t, e.db) { // make test ON=mariadb11
		e.database = "mariadb11"
	}
	return e
}

// among reports whether a database is one of those that are named.
func among(database, names string) bool {
	for name := range strings.FieldsSeq(names) {
		if name == database || name == "mysql" && strings.HasPrefix(database, "m") {
			return true
		}
	}
	return false
}

func (e *env) must(err error) {
	e.t.Helper()
	if err != nil {
		e.t.Fatal(err)
	}
}

func (e *env) migrate(models ...any) {
	e.t.Helper()
	e.must(e.db.AutoMigrate(models...))
}

func (e *env) create(rows ...any) {
	e.t.Helper()
	for _, row := range rows {
		e.must(e.db.Create(row).Error)
	}
}

// exec runs the statement for the kind of database at hand.
func (e *env) exec(statements map[string]string) {
	e.t.Helper()
	e.must(e.db.Exec(statements[e.db.Name()]).Error)
}

// want checks how a Do ended, as guard.ResultOf names it, and how many events there
// have been by now.
func (e *env) want(err error, outcome string, events int) {
	e.t.Helper()
	if got, n := string(guard.ResultOf(err)), len(e.Events.All()); got != outcome || n != events {
		e.t.Errorf("%s with %d events, want %s with %d: %v", got, n, outcome, events, err)
	}
}

// unless1020 is an outcome where a row has changed since the snapshot. A MariaDB that
// refuses to write such a row fails: the operation can be retried.
func (e *env) unless1020(outcome string) string {
	if testdb.SnapshotIsolation(e.t, e.db) {
		return "failed"
	}
	return outcome
}

// overlap runs load and save under key, and rival between the two, when the lock is
// lost. On SQLite, where one transaction writes at a time, load comes first, and rival
// between the lock and the transaction.
func (e *env) overlap(key string, load, rival, save guard.Op, opts ...guard.Option) error {
	lose := func() error {
		e.Forget(key)
		if err := e.peer.Do(bg, key, rival, opts...); err != nil {
			return fmt.Errorf("the rival: %w", err)
		}
		return nil
	}
	if e.db.Name() == "sqlite" {
		e.must(load(bg, e.db))
		return e.late(func() {
			if err := lose(); err != nil {
				e.t.Error(err)
			}
		}).Do(bg, key, save, opts...)
	}
	return e.Do(bg, key, func(ctx context.Context, tx *gorm.DB) error {
		if err := load(ctx, tx); err != nil {
			return err
		}
		if err := lose(); err != nil {
			return err
		}
		return save(ctx, tx)
	}, opts...)
}

// late returns an instance that calls f when it has got a lock.
func (e *env) late(f func()) *guard.Guard {
	locker, err := lock.New(lateEngine{e.Engine(), f}, lock.Config{})
	e.must(err)
	g, err := guard.New(e.db, locker, guard.Config{Service: "test", Publisher: &e.Events})
	e.must(err)
	e.t.Cleanup(func() {
		e.must(g.Close(bg))
		e.must(locker.Close(bg))
	})
	return g
}

type lateEngine struct {
	lockengine.Engine
	granted func()
}

func (l lateEngine) Acquire(ctx context.Context, h lockengine.Request, ttl time.Duration) (lockengine.Grant, error) {
	grant, err := l.Engine.Acquire(ctx, h, ttl)
	if err == nil {
		l.granted()
	}
	return grant, err
}

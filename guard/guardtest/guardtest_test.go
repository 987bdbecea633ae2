package guardtest_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"gorm.io/driver/sqlite"
	"gorm.io/gorm"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/guard/guardtest"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/notify"
	"github.com/belaygo/belay/once"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type Order struct {
	ID uint
	No string `gorm:"size:64;uniqueIndex"`
}

func TestExamples(t *testing.T) {
	for name, test := range map[string]func(*testing.T, func() *gorm.DB){
		"Example":              func(t *testing.T, open func() *gorm.DB) { testLostLock(t, open()) },
		"ExampleGuard_LoseAll": testWithoutLocks,
		"ExampleGuard_Forget":  func(t *testing.T, open func() *gorm.DB) { testTransfer(t, open()) },
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "orders.db")
			open := func() *gorm.DB { return testdb.OpenSQLite(t, path) }
			db := open()
			if err := errors.Join(db.AutoMigrate(&Order{}, &Stock{}), db.Create([]Stock{{ID: 1}, {ID: 2}}).Error); err != nil {
				t.Fatal(err)
			}
			test(t, open)
		})
	}
}

// sqliteDialect is that of SQLite without cgo.
func sqliteDialect(dsn string) gorm.Dialector {
	return sqlite.New(sqlite.Config{DriverName: "sqlite", DSN: dsn})
}

func TestOpen(t *testing.T) {
	t.Run("ExampleOpen", testPlace)
	var files []string
	for range 2 {
		t.Run("a database of its own", func(t *testing.T) {
			g := guardtest.Open(t, sqliteDialect, &Order{})
			var n int64
			if err := g.DB.Model(&Order{}).Count(&n).Error; err != nil || n != 0 {
				t.Errorf("%d orders, %v", n, err)
			}
			var file, mode string
			row := g.DB.Raw("SELECT (SELECT file FROM pragma_database_list), (SELECT * FROM pragma_journal_mode)").Row()
			if err := row.Scan(&file, &mode); err != nil || mode != "wal" {
				t.Errorf("journal mode %q, %v", mode, err)
			}
			files = append(files, file)
			if err := place(t.Context(), g.Guard, "1"); err != nil {
				t.Error(err)
			}
		})
	}
	for _, file := range files {
		if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v, want it gone", file, err)
		}
	}
}

// TestForget is how a program tests that it survives a lost lock.
func TestForget(t *testing.T) {
	path := filepath.Join(t.TempDir(), "orders.db")
	db := testdb.OpenSQLite(t, path)
	if err := db.AutoMigrate(&Order{}); err != nil {
		t.Fatal(err)
	}
	g := guardtest.New(t, db)
	other := g.Peer(t, testdb.OpenSQLite(t, path))
	ctx := context.Background()

	err := g.Do(ctx, "order:1", func(context.Context, *gorm.DB) error {
		err := other.Apply(ctx, "order:1", guard.Insert(&Order{No: "1"}))
		if !errors.Is(err, guard.ErrBusy) {
			t.Errorf("error of the second caller is %v, want ErrBusy", err)
		}
		if !g.Forget("order:1") || g.Forget("order:1") {
			t.Error("Forget does not tell whether there was a lock")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}

	events := g.Events.All()
	if len(events) != 1 || events[0].Verdict != notify.VerdictLost || events[0].Outcome != notify.OutcomeCommitted {
		t.Errorf("events are %+v, want a lost lock found at the release", events)
	}
	if err := other.Apply(ctx, "order:1", guard.Insert(&Order{No: "1"})); err != nil {
		t.Errorf("the key is not free: %v", err)
	}
}

type Stock struct {
	ID      uint
	Left    int
	Version dbguard.Version
}

// TestLoseAll: everybody gets through, and the database lets one insert, and each
// update once.
func TestLoseAll(t *testing.T) {
	testdb.Each(t, func(t *testing.T, open func(...gorm.Option) *gorm.DB) {
		db := open()
		if err := db.AutoMigrate(&Order{}, &Stock{}); err != nil {
			t.Fatal(err)
		}
		if err := db.Create(&Stock{ID: 1}).Error; err != nil {
			t.Fatal(err)
		}
		g := guardtest.New(t, db)
		g.LoseAll(true)
		const callers = 4
		var placed, counted atomic.Int64
		var running, begun sync.WaitGroup
		begun.Add(callers)
		for range callers {
			instance := g.Peer(t, open())
			running.Go(func() {
				ctx := t.Context()
				err := instance.Apply(ctx, "order:1", guard.Insert(&Order{No: "1"}), guard.Remember(time.Minute))
				switch {
				case err == nil:
					placed.Add(1)
				case !errors.Is(err, guard.ErrIntercepted) && !errors.Is(err, guard.ErrDuplicate):
					t.Errorf("error is %v, want one of a repeat or of a lost lock", err)
				}
				begun.Done()
				begun.Wait()
				if instance.Apply(ctx, "sku:1", guard.Update(&Stock{ID: 1}, func(s *Stock) error { s.Left++; return nil })) == nil {
					counted.Add(1)
				}
			})
		}
		running.Wait()
		var s Stock
		if err := db.Take(&s, 1).Error; err != nil {
			t.Fatal(err)
		}
		if placed.Load() != 1 || s.Left == 0 || int64(s.Left) != counted.Load() {
			t.Errorf("the order was placed %d times; %d updates came through, and the row counts %d", placed.Load(), counted.Load(), s.Left)
		}
		if len(g.Events.All()) == 0 {
			t.Error("nobody reported a lost lock")
		}

		g.LoseAll(false)
		other := g.Peer(t, db)
		if err := g.Do(t.Context(), "k", func(context.Context, *gorm.DB) error {
			insert := guard.Insert(&Order{No: "2"}).Run
			if err := other.Do(t.Context(), "k", insert); !errors.Is(err, guard.ErrBusy) {
				t.Errorf("error is %v, want ErrBusy: locks hold again", err)
			}
			if db.Name() == "sqlite" { // it would wait for this transaction
				return nil
			}
			g.LoseAll(true)
			return other.Do(t.Context(), "k", insert)
		}); err != nil {
			t.Errorf("error is %v: a lock that is held when all are to be lost is in the way", err)
		}
	})
}

// TestOpenServesRequests: requests have their tables without another call.
func TestOpenServesRequests(t *testing.T) {
	g := guardtest.Open(t, sqliteDialect, &Order{})
	r := once.Request{Operation: "order", Scope: once.Anyone, ID: "1"}
	for n := range 2 {
		a, err := guard.Once(t.Context(), g.Guard, r, func(_ context.Context, tx *gorm.DB) (string, error) {
			return "placed", tx.Create(&Order{No: "1"}).Error
		})
		if err != nil || a.Value != "placed" || a.Replayed != (n == 1) {
			t.Errorf("call %d: %+v, %v", n, a, err)
		}
	}
}

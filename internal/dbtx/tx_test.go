package dbtx_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/internal/dbtx"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
)

func TestCommitAndRollback(t *testing.T) {
	each(t, func(t *testing.T, db *gorm.DB) {
		tx := begin(t, db, dbtx.Options{})
		wantNil(t, tx.DB().Create(&Order{No: "a"}).Error)
		wantNil(t, tx.Commit())
		wantIs(t, tx.Commit(), sql.ErrTxDone)
		wantIs(t, tx.DB().Create(&Order{No: "b"}).Error, sql.ErrTxDone)
		tx.Rollback()

		tx = begin(t, db, dbtx.Options{})
		wantNil(t, tx.DB().Create(&Order{No: "c"}).Error)
		tx.Rollback()
		if n := count(t, db, &Order{}); n != 1 {
			t.Errorf("%d rows, want the committed one", n)
		}
	})
}

// TestConnectionIsKept: an end that was acknowledged does not cost a connection.
func TestConnectionIsKept(t *testing.T) {
	db := testdb.OpenMySQL(t, teststack.MySQL(t))
	prepare(t, db)
	pool, err := db.DB()
	wantNil(t, err)
	pool.SetMaxOpenConns(1)
	id := func(db *gorm.DB) (n int) {
		wantNil(t, db.Raw("SELECT CONNECTION_ID()").Scan(&n).Error)
		return n
	}
	first := id(db)
	for i := range 50 {
		tx := begin(t, db, dbtx.Options{})
		wantNil(t, tx.DB().Create(&Order{No: strconv.Itoa(i)}).Error)
		if n := id(tx.DB()); n != first {
			t.Fatalf("connection %d after %d transactions, want %d", n, i, first)
		}
		if i%2 == 0 {
			tx.Rollback()
		} else {
			wantNil(t, tx.Commit())
		}
	}
}

func TestNotInstalled(t *testing.T) {
	testdb.Each(t, func(t *testing.T, open func(...gorm.Option) *gorm.DB) {
		if _, err := dbtx.Begin(bg, open(), dbtx.Options{}); err == nil {
			t.Error("Begin succeeded")
		}
		if err := dbtx.Install(nil); err == nil {
			t.Error("Install(nil) succeeded")
		}
	})
}

func TestOuterSessionIsUntouched(t *testing.T) {
	each(t, func(t *testing.T, db *gorm.DB) {
		tx := begin(t, db, dbtx.Options{})
		wantNil(t, tx.DB().Create(&Order{No: "a"}).Error)
		if db.Statement.ConnPool == tx.DB().Statement.ConnPool {
			t.Error("the user's db runs in the transaction")
		}
		tx.Rollback()
		wantNil(t, db.Create(&Order{No: "b"}).Error)
		if n := count(t, db, &Order{}); n != 1 {
			t.Errorf("%d rows, want 1", n)
		}
	})
}

func TestTransactionControlIsRefused(t *testing.T) {
	each(t, func(t *testing.T, db *gorm.DB) {
		tx := begin(t, db, dbtx.Options{})
		wantNil(t, tx.DB().Create(&Order{No: "a"}).Error)
		for name, do := range map[string]func() error{
			"commit":      func() error { return tx.DB().Commit().Error },
			"rollback":    func() error { return tx.DB().Rollback().Error },
			"exec commit": func() error { return tx.DB().Exec("COMMIT").Error },
			"ddl":         func() error { return tx.DB().Exec("CREATE TABLE x (a int)").Error },
			"migrate":     func() error { return tx.DB().AutoMigrate(&struct{ ID int }{}) },
			"raw commit":  func() error { var n int; return tx.DB().Raw("/**/commit").Scan(&n).Error },
			"set":         func() error { return tx.DB().Exec("SET autocommit = 1").Error },
			"second":      func() error { return tx.DB().Exec("SELECT 1; COMMIT").Error },
		} {
			if err := do(); !errors.Is(err, dbtx.ErrTxControl) && name != "migrate" || err == nil {
				t.Errorf("%s: error is %v, want ErrTxControl", name, err)
			}
		}
		tx.Rollback()
		if n := count(t, db, &Order{}); n != 0 {
			t.Errorf("%d rows, want none: the transaction was ended inside", n)
		}
	})
}

func TestStatementsOutsideAreRefused(t *testing.T) {
	each(t, func(t *testing.T, db *gorm.DB) {
		tx := begin(t, db, dbtx.Options{})
		ctx := tx.Context()
		outer := db.WithContext(ctx)
		for name, do := range map[string]func() error{
			"create": func() error { return outer.Create(&Order{No: "x"}).Error },
			"find":   func() error { return outer.Find(&[]Order{}).Error },
			"update": func() error { return outer.Model(&Order{}).Where("1 = 1").Update("no", "y").Error },
			"delete": func() error { return outer.Where("1 = 1").Delete(&Order{}).Error },
			"exec":   func() error { return outer.Exec("DELETE FROM orders").Error },
			"rows": func() error {
				rows, err := outer.Raw("SELECT 1").Rows()
				if err != nil {
					return err
				}
				defer rows.Close()
				return rows.Err()
			},
			"prepared": func() error { return tx.DB().Session(&gorm.Session{PrepareStmt: true}).Create(&Order{No: "p"}).Error },
			"connection": func() error {
				return tx.DB().Connection(func(c *gorm.DB) error { return c.Exec("DELETE FROM orders").Error })
			},
			"generics": func() error { return gorm.G[Order](db).Create(ctx, &Order{No: "g"}) },
		} {
			if err := do(); err == nil {
				t.Errorf("%s: no error", name)
			} else if name != "connection" && !errors.Is(err, dbguard.ErrOutside) {
				t.Errorf("%s: error is %v, want ErrOutside", name, err)
			}
		}
		var n int
		if err := outer.Raw("SELECT 1").Row().Scan(&n); err == nil {
			t.Error("row: no error")
		}
		if err := tx.DB().Begin().Error; err == nil {
			t.Error("begin: no error")
		}
		wantNil(t, gorm.G[Order](tx.DB()).Create(ctx, &Order{No: "in"}))
		tx.Rollback()
		if n := count(t, db, &Order{}); n != 0 {
			t.Errorf("%d rows escaped the transaction", n)
		}
	})
}

func TestDeadLease(t *testing.T) {
	each(t, func(t *testing.T, db *gorm.DB) {
		errGone := errors.New("gone")
		var gone error
		tx := begin(t, db, dbtx.Options{Alive: func() error { return gone }})
		wantNil(t, tx.DB().Create(&Order{No: "a"}).Error)
		gone = errGone
		wantIs(t, tx.DB().Create(&Order{No: "b"}).Error, errGone)
		wantIs(t, tx.DB().Find(&[]Order{}).Error, errGone)
		var n int
		if err := tx.DB().Raw("SELECT 1").Row().Scan(&n); err == nil {
			t.Error("a row was read")
		}
		wantIs(t, tx.Commit(), errGone)
		if n := count(t, db, &Order{}); n != 0 {
			t.Errorf("%d rows, want none", n)
		}
	})
}

func TestEndAfterTheContext(t *testing.T) {
	each(t, func(t *testing.T, db *gorm.DB) {
		ctx, cancel := context.WithCancel(bg)
		tx := beginCtx(ctx, t, db, dbtx.Options{})
		wantNil(t, tx.DB().Create(&Order{No: "a"}).Error)
		cancel()
		wantNil(t, tx.Commit())
		if n := count(t, db, &Order{}); n != 1 {
			t.Errorf("%d rows, want 1", n)
		}
	})
}

// TestCancelledStatement cuts a statement short: nothing of the transaction may
// stay, and nothing may be sent behind it.
func TestCancelledStatement(t *testing.T) {
	t.Parallel()
	db := testdb.OpenMySQL(t, teststack.MySQL(t))
	prepare(t, db)
	pool, err := db.DB()
	wantNil(t, err)
	pool.SetMaxOpenConns(2)

	ctx, cancel := context.WithCancel(bg)
	tx := beginCtx(ctx, t, db, dbtx.Options{})
	wantNil(t, tx.DB().Create(&Order{No: "a"}).Error)
	go func() {
		testwait.Until(t, "the statement runs", func() bool {
			var n int
			err := db.Raw("SELECT COUNT(*) FROM information_schema.processlist WHERE info LIKE 'SELECT SLEEP(%' AND db = DATABASE()").Scan(&n).Error
			return err == nil && n > 0
		})
		cancel()
	}()
	wantIs(t, tx.DB().Exec("SELECT SLEEP(100)").Error, context.Canceled)
	if tx.Poisoned() == nil {
		t.Error("the transaction is not poisoned")
	}
	wantIs(t, tx.DB().WithContext(context.WithoutCancel(tx.Context())).Create(&Order{No: "b"}).Error, dbtx.ErrPoisoned)
	wantIs(t, tx.Commit(), dbtx.ErrPoisoned)
	if n := count(t, db, &Order{}); n != 0 {
		t.Errorf("%d rows, want none", n)
	}
	if open := pool.Stats().InUse; open != 0 {
		t.Errorf("%d connections are in use", open)
	}
}

// TestCancelledStatementSQLite is the same on SQLite, which rolls back by
// itself: the next statement would commit alone.
func TestCancelledStatementSQLite(t *testing.T) {
	db := testdb.OpenSQLite(t, t.TempDir()+"/test.db")
	prepare(t, db)
	ctx, cancel := context.WithCancel(bg)
	defer cancel()
	tx := beginCtx(ctx, t, db, dbtx.Options{})
	wantNil(t, tx.DB().Create(&Order{No: "a"}).Error)
	time.AfterFunc(50*time.Millisecond, cancel)
	err := tx.DB().Exec(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n)
		INSERT INTO stocks (id, "left", version) SELECT i, 0, 1 FROM n`).Error
	if err == nil {
		t.Fatal("an endless statement ended")
	}
	wantIs(t, tx.DB().WithContext(context.WithoutCancel(tx.Context())).Create(&Order{No: "b"}).Error, dbtx.ErrPoisoned)
	wantIs(t, tx.Commit(), dbtx.ErrPoisoned)
	if n := count(t, db, &Order{}); n != 0 {
		t.Errorf("%d rows, want none", n)
	}
}

func lockRow(db *gorm.DB, id int) error {
	return db.Exec("UPDATE stocks SET `left` = `left` + 1 WHERE id = ?", id).Error
}

// deadlock has f, whose transaction has locked row 1, ask for row 2 when another
// one waits the other way round.
func deadlock(t *testing.T, db *gorm.DB, f func() error) {
	t.Helper()
	other := db.Begin()
	defer other.Rollback()
	wantNil(t, lockRow(other, 2))
	for i := range 50 { // the heavier transaction survives
		wantNil(t, other.Create(&Order{No: "heavy" + strconv.Itoa(i)}).Error)
	}
	var id int64
	wantNil(t, other.Raw("SELECT CONNECTION_ID()").Scan(&id).Error)
	waits := make(chan error, 1)
	go func() { waits <- lockRow(other, 1) }()
	testwait.Until(t, "the other transaction waits", func() bool { return testdb.Waiting(t, db, id) == 1 })
	if err := f(); err == nil {
		t.Error("no deadlock")
	}
	wantNil(t, <-waits)
}

// TestFailedRollbackTo: what should have been undone would be committed.
func TestFailedRollbackTo(t *testing.T) {
	each(t, func(t *testing.T, db *gorm.DB) {
		tx := begin(t, db, dbtx.Options{})
		wantNil(t, tx.DB().Create(&Order{No: "a"}).Error)
		_ = tx.DB().WithContext(tx.Context()).RollbackTo("nowhere") // not every dialect returns an error
		wantIs(t, tx.Commit(), dbtx.ErrPoisoned)
		if n := count(t, db, &Order{}); n != 0 {
			t.Errorf("%d rows, want none", n)
		}
	})
}

// TestOuterContext: the connection decides where a statement belongs, whatever its
// context.
func TestOuterContext(t *testing.T) {
	each(t, func(t *testing.T, db *gorm.DB) {
		wantNil(t, db.Create(&Order{No: "a"}).Error)
		for name, do := range map[string]func(tx *gorm.DB) error{
			"create":   func(tx *gorm.DB) error { return tx.WithContext(bg).Create(&Order{No: "a"}).Error },
			"generics": func(tx *gorm.DB) error { return gorm.G[Order](tx).Create(bg, &Order{No: "a"}) },
		} {
			tx := begin(t, db, dbtx.Options{})
			wantNil(t, tx.Protect(&Order{No: "a"}))
			wantIs(t, do(tx.DB()), gorm.ErrDuplicatedKey)
			if c := refused(tx); c == nil || !c.Evidence.Found {
				t.Errorf("%s: conflict is %+v, want a judged one", name, c)
			}
			tx.Rollback()
		}

		tx := begin(t, db, dbtx.Options{})
		prepared := tx.DB().WithContext(bg).Session(&gorm.Session{PrepareStmt: true})
		wantIs(t, prepared.Create(&Order{No: "b"}).Error, dbguard.ErrOutside)
		var n int
		if err := prepared.Raw("SELECT 1").Row().Scan(&n); err == nil {
			t.Error("a prepared row was read")
		}
		if db.Name() == "mysql" { // SQLite lets no second one in
			other := begin(t, db, dbtx.Options{})
			wantIs(t, tx.DB().WithContext(other.Context()).Find(&[]Order{}).Error, dbguard.ErrOutside)
		}
		tx.Rollback()
		if n := count(t, db, &Order{}); n != 1 {
			t.Errorf("%d rows, want 1", n)
		}
	})
}

func TestBeginIsBounded(t *testing.T) {
	each(t, func(t *testing.T, db *gorm.DB) {
		pool, err := db.DB()
		wantNil(t, err)
		pool.SetMaxOpenConns(1)
		taken, err := pool.Conn(bg)
		wantNil(t, err)
		defer taken.Close()
		_, err = dbtx.Begin(bg, db, dbtx.Options{BeginTimeout: 20 * time.Millisecond})
		wantIs(t, err, dbtx.ErrNoConnection)
		if errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error is %v, but the caller's context has not ended", err)
		}
		if strings.Contains(err.Error(), "canceled") {
			t.Errorf("error is %v, and nobody has canceled anything", err)
		}
		ctx, cancel := context.WithTimeout(bg, 20*time.Millisecond)
		defer cancel()
		_, err = dbtx.Begin(ctx, db, dbtx.Options{BeginTimeout: time.Minute})
		wantIs(t, err, context.DeadlineExceeded)
	})
}

func TestOnRollback(t *testing.T) {
	each(t, func(t *testing.T, db *gorm.DB) {
		var called []int
		tx := begin(t, db, dbtx.Options{})
		tx.OnRollback(func() { called = append(called, 1) })
		wantNil(t, tx.Commit())
		tx.Rollback()
		if len(called) != 0 {
			t.Error("called after a commit")
		}
		tx = begin(t, db, dbtx.Options{})
		tx.OnRollback(func() { called = append(called, 1) })
		tx.OnRollback(func() { called = append(called, 2) })
		tx.Rollback()
		tx.Rollback()
		if len(called) != 2 || called[0] != 2 || called[1] != 1 {
			t.Errorf("called %v, want 2 and then 1", called)
		}
	})
}

// TestContextIsPrintable: printing an operation's context, as mocks and loggers do, does not read the
// transaction, which others may use meanwhile.
func TestContextIsPrintable(t *testing.T) {
	db := testdb.OpenSQLite(t, filepath.Join(t.TempDir(), "db"))
	prepare(t, db)
	tx := begin(t, db, dbtx.Options{Key: "order:a"})
	if got, want := fmt.Sprint(tx.Context()), fmt.Sprint(bg)+".WithCancel.WithTransaction"; got != want {
		t.Errorf("the context is printed as %.200q, want %q", got, want)
	}
}

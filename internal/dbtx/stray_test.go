package dbtx_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"slices"
	"sync"
	"testing"

	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/dbtx"
	"github.com/belaygo/belay/internal/testwait"
)

// TestStatementBehindTheEnd: goroutines that outlive their operation send statements while
// the transaction ends. Each statement is in the transaction, or is refused: none is
// committed alone.
func TestStatementBehindTheEnd(t *testing.T) {
	const rounds = 40
	each(t, func(t *testing.T, db *gorm.DB) {
		wantNil(t, db.AutoMigrate(&Coupon{}))
		insert := insertAlone(db)
		for name, end := range map[string]func(*dbtx.Tx) error{
			"rollback": func(tx *dbtx.Tx) error { tx.Rollback(); return nil },
			"commit":   (*dbtx.Tx).Commit,
		} {
			t.Run(name, func(t *testing.T) {
				behind := 0
				for range rounds {
					tx := begin(t, db, dbtx.Options{})
					strays := startStrays(tx, insert, 2)
					if err := strays.awaitWrite(); err != nil {
						t.Fatal(err)
					}
					wantNil(t, end(tx))
					strays.wait(t)
					alone := db.Where("code IS NOT NULL")
					if name == "rollback" {
						alone = db
					}
					if count(t, alone, &Coupon{}) > 0 {
						behind++
					}
					wantNil(t, db.Where("1 = 1").Delete(&Coupon{}).Error)
				}
				if behind > 0 {
					t.Errorf("rows were written behind the end in %d of %d rounds", behind, rounds)
				}
			})
		}
	})
}

// insertAlone returns a statement that inserts a coupon, whose code is not NULL if the
// statement is a transaction of its own, as far as the database says so.
func insertAlone(db *gorm.DB) string {
	code := "NULL"
	switch {
	case db.Name() == "postgres":
		code = "CASE WHEN statement_timestamp() = transaction_timestamp() THEN md5(random()::text) END"
	case db.Name() == "mysql" && db.Exec("SELECT @@in_transaction").Error == nil: // MariaDB
		code = "IF(@@in_transaction, NULL, MD5(RAND()))"
	}
	return "INSERT INTO coupons (code) VALUES (" + code + ")"
}

// strays are goroutines that insert coupons until they are refused.
type strays struct {
	wrote chan struct{} // one of them has written a row
	errs  chan error
	group sync.WaitGroup
}

func startStrays(tx *dbtx.Tx, insert string, n int) *strays {
	s := &strays{wrote: make(chan struct{}), errs: make(chan error, n)}
	var once sync.Once
	for range n {
		s.group.Go(func() {
			for {
				err := tx.DB().Session(&gorm.Session{NewDB: true, Context: bg}).Exec(insert).Error
				if err != nil {
					s.errs <- err
					return
				}
				once.Do(func() { close(s.wrote) })
			}
		})
	}
	return s
}

// awaitWrite waits until one of them has written a row.
func (s *strays) awaitWrite() error {
	select {
	case <-s.wrote:
		return nil
	case err := <-s.errs:
		return err
	}
}

// wait waits for the goroutines, and wants them to be refused because the transaction has
// ended, or to be cut short by the ROLLBACK, perhaps with the connection.
func (s *strays) wait(t *testing.T) {
	t.Helper()
	s.group.Wait()
	close(s.errs)
	for err := range s.errs {
		refused := func(target error) bool { return errors.Is(err, target) }
		if !slices.ContainsFunc([]error{sql.ErrTxDone, context.Canceled, dbtx.ErrPoisoned, driver.ErrBadConn}, refused) {
			t.Errorf("a statement ended with %v, want sql.ErrTxDone", err)
		}
	}
}

// TestRollbackCutsShort: a ROLLBACK waits for no statement of a goroutine that has a context
// of its own.
func TestRollbackCutsShort(t *testing.T) {
	each(t, func(t *testing.T, db *gorm.DB) {
		wantNil(t, db.AutoMigrate(&Coupon{}))
		slow, running := sleeping(db)
		if slow == "" {
			t.Skip("nothing sleeps there")
		}
		tx := begin(t, db, dbtx.Options{})
		done := make(chan error, 1)
		go func() { done <- tx.DB().Session(&gorm.Session{NewDB: true, Context: bg}).Exec(slow).Error }()
		testwait.Until(t, "the statement runs", func() bool {
			var n int64
			return db.Raw(running).Scan(&n).Error == nil && n == 1
		})
		tx.Rollback()
		if err := <-done; err == nil {
			t.Error("the statement has succeeded")
		}
	})
}

// TestCommitGivesUp: a COMMIT waits for the statement that runs, but not longer than its
// caller does.
func TestCommitGivesUp(t *testing.T) {
	each(t, func(t *testing.T, db *gorm.DB) {
		wantNil(t, db.AutoMigrate(&Coupon{}))
		slow, running := sleeping(db)
		if slow == "" {
			t.Skip("nothing sleeps there")
		}
		ctx, cancel := context.WithCancel(bg)
		tx := beginCtx(ctx, t, db, dbtx.Options{})
		wantNil(t, tx.DB().Create(&Coupon{}).Error)
		go tx.DB().Session(&gorm.Session{NewDB: true, Context: bg}).Exec(slow)
		testwait.Until(t, "the statement runs", func() bool {
			var n int64
			return db.Raw(running).Scan(&n).Error == nil && n == 1
		})
		done := make(chan error, 1)
		go func() { done <- tx.Commit() }()
		cancel()
		wantIs(t, <-done, context.Canceled)
		if n := count(t, db, &Coupon{}); n != 0 {
			t.Errorf("%d rows, want none", n)
		}
	})
}

// sleeping returns a statement that takes long, and a query for how many run.
func sleeping(db *gorm.DB) (slow, running string) {
	switch db.Name() {
	case "mysql":
		return "SELECT SLEEP(600)", "SELECT COUNT(*) FROM information_schema.processlist WHERE db = DATABASE() AND info LIKE 'SELECT SLEEP(600%'"
	case "postgres":
		return "SELECT pg_sleep(600)", "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND state = 'active' AND query LIKE 'SELECT pg_sleep(600%'"
	}
	return "", ""
}

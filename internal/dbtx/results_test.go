package dbtx_test

import (
	"database/sql"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/dbtx"
	"github.com/belaygo/belay/internal/dbtx/pinned"
)

// inTime fails the test if f hangs.
func inTime(t *testing.T, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
	case <-time.After(30 * time.Second):
		t.Fatal("it hangs")
	}
}

func openRows(t *testing.T, tx *gorm.DB) *sql.Rows {
	t.Helper()
	rows, err := tx.Raw("SELECT id FROM stocks").Rows()
	wantNil(t, err)
	if !rows.Next() || rows.Err() != nil {
		t.Fatalf("no rows: %v", rows.Err())
	}
	return rows
}

// TestForgottenRows: rows that nobody closes would keep the connection, and the
// caller of Commit, for ever.
func TestForgottenRows(t *testing.T) {
	each(t, func(t *testing.T, db *gorm.DB) {
		wantNil(t, db.Create(&[]Stock{{ID: 1}, {ID: 2}}).Error)
		pool, err := db.DB()
		wantNil(t, err)
		for name, forget := range map[string]func(tx *gorm.DB){
			"rows":                func(tx *gorm.DB) { wantNil(t, openRows(t, tx).Err()) },                 //nolint:sqlclosecheck // that is the test
			"rows, outer context": func(tx *gorm.DB) { wantNil(t, openRows(t, tx.WithContext(bg)).Err()) }, //nolint:sqlclosecheck // the same
			"row":                 func(tx *gorm.DB) { _ = tx.Raw("SELECT id FROM stocks").Row() },
		} {
			t.Run(name, func(t *testing.T) {
				tx := begin(t, db, dbtx.Options{})
				wantNil(t, tx.DB().Create(&Order{No: name}).Error)
				inTime(t, func() {
					forget(tx.DB())
					wantIs(t, tx.Commit(), pinned.ErrRowsOpen)
				})
				if n := count(t, db, &Order{}); n != 0 {
					t.Errorf("%d rows, want none", n)
				}
				if n := pool.Stats().InUse; n != 0 {
					t.Errorf("%d connections are in use", n)
				}
			})
		}
	})
}

// TestStatementWhileRowsAreOpen: MySQL can't take it, and the driver's answer
// would close the connection under the rows, which waits for them.
func TestStatementWhileRowsAreOpen(t *testing.T) {
	each(t, func(t *testing.T, db *gorm.DB) {
		wantNil(t, db.Create(&[]Stock{{ID: 1}, {ID: 2}}).Error)
		tx := begin(t, db, dbtx.Options{})
		inTime(t, func() {
			rows := openRows(t, tx.DB())
			defer rows.Close()
			err := tx.DB().Create(&Order{No: "a"}).Error
			if db.Name() != "sqlite" {
				wantIs(t, err, pinned.ErrRowsOpen)
			} else {
				wantNil(t, err)
			}
			if !rows.Next() { // they are as they were
				t.Errorf("the second row is gone: %v", rows.Err())
			}
		})
		wantNil(t, tx.DB().Create(&Order{No: "b"}).Error)
		wantNil(t, tx.Commit())
	})
}

func TestStatementWhileARowIsUnread(t *testing.T) {
	each(t, func(t *testing.T, db *gorm.DB) {
		wantNil(t, db.Create(&[]Stock{{ID: 1}, {ID: 2}}).Error)
		tx := begin(t, db, dbtx.Options{})
		var id int
		inTime(t, func() {
			row := tx.DB().Raw("SELECT id FROM stocks").Row()
			err := tx.DB().Create(&Order{No: "a"}).Error
			if db.Name() != "sqlite" {
				wantIs(t, err, pinned.ErrRowsOpen)
				wantIs(t, tx.Commit(), pinned.ErrRowsOpen)
				return
			}
			wantNil(t, err)
			wantNil(t, row.Scan(&id))
			wantNil(t, tx.Commit())
		})
	})
}

package promises_test

import (
	"context"
	"sync"
	"testing"

	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/internal/dbtx"
	"github.com/belaygo/belay/notify"
)

// Basket is a row that gorm saves with its lines, one statement after the other.
type Basket struct {
	ID    uint
	No    string `gorm:"size:64;uniqueIndex"`
	Lines []BasketLine
}

type BasketLine struct {
	ID       uint
	BasketID uint
	Name     string
}

// wantOverlaps checks how many overlaps were published for a key.
func (e *env) wantOverlaps(key string, want int) {
	e.t.Helper()
	n := 0
	for _, ev := range e.Events.All() {
		if ev.Verdict == notify.VerdictOverlap && ev.Key == key {
			n++
		}
	}
	if n != want {
		e.t.Errorf("%s: %d overlaps published, want %d", key, n, want)
	}
}

// TestRetryRemembersItsWrites: a write that succeeded proves how its row was before,
// also to the next attempt, when a later statement of the first one met a deadlock.
func TestRetryRemembersItsWrites(t *testing.T) {
	mysqlOnly(t, func(e *env) {
		wantNil(e.t, e.db.AutoMigrate(&Basket{}, &BasketLine{}))
		e.create(&Stock{ID: 1, Left: 9}, &Stock{ID: 2, Left: 9})
		other := e.open()
		for _, trigger := range []string{
			`lines_meet BEFORE INSERT ON basket_lines FOR EACH ROW IF @deadlock = 1`,
			`stock_meets BEFORE UPDATE ON stocks FOR EACH ROW IF @deadlock = 1 AND NEW.id = 2`,
		} {
			wantNil(e.t, e.db.Exec("CREATE TRIGGER "+trigger+" THEN SIGNAL SQLSTATE '40001' SET MYSQL_ERRNO = 1213; END IF").Error)
		}
		// twice has the first attempt end in a deadlock, and the rival write after it.
		twice := func(op guard.Op, rival func(*gorm.DB) error) guard.Op {
			calls := 0
			return func(ctx context.Context, tx *gorm.DB) error {
				calls++
				wantNil(e.t, tx.Exec("SET @deadlock = ?", calls).Error)
				if calls == 1 {
					dbtx.FromContext(ctx).OnRollback(func() { wantNil(e.t, rival(other)) })
				}
				if err := op(ctx, tx); err != nil {
					return err
				}
				return tx.Exec("UPDATE stocks SET version = version + 1 WHERE id = 2").Error
			}
		}

		err := e.Do(bg, "insert", twice(
			guard.Insert(&Order{No: "a"}).Run,
			func(db *gorm.DB) error { return db.Create(&Order{No: "a"}).Error },
		), guard.Retries(1))
		wantIs(e.t, err, guard.ErrIntercepted)
		e.wantOverlaps("insert", 1)

		err = e.Do(bg, "update by a version", twice(
			func(_ context.Context, tx *gorm.DB) error {
				return tx.Model(&Stock{ID: 1, Version: 1}).Update("left", 8).Error
			},
			func(db *gorm.DB) error { return db.Model(&Stock{ID: 1}).Update("left", 5).Error },
		), guard.Retries(1), guard.Protects(&Stock{ID: 1}))
		wantIs(e.t, err, guard.ErrIntercepted)
		e.wantOverlaps("update by a version", 1)

		// Insert is run again without an option. gorm inserts the lines after the row.
		var rival sync.Once
		attempts := 0
		wantNil(e.t, e.db.Callback().Create().Before("gorm:create").Register("test:attempt", func(db *gorm.DB) {
			if db.Statement.Table != "baskets" {
				return
			}
			attempts++
			_, err := db.Statement.ConnPool.ExecContext(db.Statement.Context, "SET @deadlock = ?", attempts)
			_ = db.AddError(err)
			dbtx.FromContext(db.Statement.Context).OnRollback(func() {
				rival.Do(func() { wantNil(e.t, other.Create(&Basket{No: "a"}).Error) })
			})
		}))
		err = e.Apply(bg, "associations", guard.Insert(&Basket{No: "a", Lines: []BasketLine{{Name: "x"}}}))
		wantIs(e.t, err, guard.ErrIntercepted)
		e.wantOverlaps("associations", 1)
		if attempts != 2 {
			e.t.Errorf("%d attempts, want 2", attempts)
		}
	})
}

// TestDeadlockBehindAWrite is that with a deadlock of the server's own: a rival that
// never asked for the lock has written more rows, so that the holder is the victim,
// at a statement behind its INSERT.
func TestDeadlockBehindAWrite(t *testing.T) {
	mysqlOnly(t, func(e *env) {
		const key = "order:a"
		for i := range 20 {
			e.create(&Stock{ID: int64(i + 1), Left: 9})
		}
		rival := e.open().Begin()
		defer rival.Rollback()
		var id int64
		wantNil(e.t, rival.Raw("SELECT CONNECTION_ID()").Scan(&id).Error)
		wantNil(e.t, rival.Exec("UPDATE stocks SET version = version + 1").Error)
		wrote, calls := make(chan error, 1), 0
		err := e.Do(bg, key, func(ctx context.Context, tx *gorm.DB) error {
			calls++
			if err := guard.Insert(&Order{No: "a"}).Run(ctx, tx); err != nil {
				return err
			}
			if calls == 1 {
				done := make(chan struct{})
				dbtx.FromContext(ctx).OnRollback(func() { <-done })
				go func() { // it waits for the holder's row
					defer close(done)
					err := rival.Create(&Order{No: "a"}).Error
					if err == nil {
						err = rival.Commit().Error
					}
					wrote <- err
				}()
				e.untilWaits(id)
			}
			return tx.Exec("UPDATE stocks SET version = version + 1 WHERE id = 2").Error // the deadlock
		}, guard.Retries(1))
		wantNil(e.t, <-wrote)
		wantIs(e.t, err, guard.ErrIntercepted)
		e.wantOverlaps(key, 1)
		if calls != 2 {
			e.t.Errorf("%d attempts, want 2", calls)
		}
	})
}

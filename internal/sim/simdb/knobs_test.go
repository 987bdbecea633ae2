package simdb_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/sim/simdb"
)

// TestCrashWhileWaiting: the server crashes while one statement waits for another's row.
func TestCrashWhileWaiting(t *testing.T) {
	each(t, simdb.Knobs{}, func(t *testing.T, sdb *simdb.Database, connect func(simdb.Gate) *gorm.DB) {
		db := connect(open)
		tx := db.Begin()
		if err := tx.Create(&Order{No: "a"}).Error; err != nil {
			t.Fatal(err)
		}
		done := make(chan error)
		go func() { done <- db.Create(&Order{No: "a"}).Error }()
		synctest.Wait()
		sdb.Crash()
		if err := <-done; err == nil {
			t.Error("a statement succeeded that waited at a crash")
		}
		if err := tx.Commit().Error; err == nil {
			t.Error("a commit succeeded after a crash")
		}
		if err := db.Create(&Order{No: "b"}).Error; err == nil {
			t.Error("the server answers after a crash")
		}
		sdb.Restart()
		if err := db.Create(&Order{No: "a"}).Error; err != nil {
			t.Error(err)
		}
		if rows := sdb.Rows("orders"); len(rows) != 1 {
			t.Errorf("rows are %v", rows)
		}
	})
}

// TestVisibleBeforeDurable: a crash loses a commit that others have seen.
func TestVisibleBeforeDurable(t *testing.T) {
	each(t, simdb.Knobs{VisibleBeforeDurable: true}, func(t *testing.T, sdb *simdb.Database, connect func(simdb.Gate) *gorm.DB) {
		flush := make(chan bool)
		db := connect(gateFunc(func(_ context.Context, c simdb.Call) simdb.Fate {
			if c.Flush {
				<-flush
			}
			return simdb.Execute
		}))
		done := make(chan error)
		insert := func(no string) { go func() { done <- db.Create(&Order{No: no}).Error }(); synctest.Wait() }
		insert("a")
		flush <- true
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		insert("b")
		var n int64
		if db.Model(&Order{}).Count(&n); n != 2 {
			t.Errorf("%d rows are visible, want 2", n)
		}
		sdb.Crash()
		flush <- true
		if err := <-done; err == nil {
			t.Error("a commit that was lost is acknowledged")
		}
		sdb.Restart()
		if rows := sdb.Rows("orders"); len(rows) != 1 {
			t.Errorf("rows are %v", rows)
		}
	})
}

// TestFailover: the new server lacks a row, and gives its number to another.
func TestFailover(t *testing.T) {
	each(t, simdb.Knobs{}, func(t *testing.T, sdb *simdb.Database, connect func(simdb.Gate) *gorm.DB) {
		db := connect(open)
		for _, no := range []string{"a", "b"} {
			if err := db.Create(&Order{No: no}).Error; err != nil {
				t.Fatal(err)
			}
		}
		sdb.Failover(1)
		c := &Order{No: "c"}
		_ = db.Create(c).Error // PostgreSQL's driver meets the end of its connection
		if err := db.Where("no = ?", "c").Assign(&Order{Amount: 1}).FirstOrCreate(c).Error; err != nil {
			t.Fatal(err)
		}
		if rows := sdb.Rows("orders"); len(rows) != 2 || rows[1]["no"] != "c" || rows[1]["id"] != int64(2) {
			t.Errorf("rows are %v", rows)
		}
	})
}

// TestLag: plain reads on the second node are behind, and its writes are not.
func TestLag(t *testing.T) {
	each(t, simdb.Knobs{}, func(t *testing.T, sdb *simdb.Database, connect func(simdb.Gate) *gorm.DB) {
		sdb.Lag()
		db := connect(open)
		if err := db.Create(&Order{No: "a"}).Error; err != nil {
			t.Fatal(err)
		}
		second := sqlOpen(t, sdb.SecondConnector("q", open))
		var n int
		count := "SELECT COUNT(*) FROM orders"
		if err := second.QueryRow(count).Scan(&n); err != nil || n != 0 {
			t.Errorf("%d rows, %v; want none yet", n, err)
		}
		if _, err := second.Exec("INSERT INTO orders (no) VALUES ('a')"); err == nil || !strings.Contains(strings.ToLower(err.Error()), "duplicate") {
			t.Errorf("error is %v", err)
		}
		sdb.Apply(-1)
		if err := second.QueryRow(count).Scan(&n); err != nil || n != 1 {
			t.Errorf("%d rows, %v; want 1", n, err)
		}
		if err := db.Create(&Order{No: "b"}).Error; err != nil {
			t.Fatal(err)
		}
		if err := second.QueryRow(count).Scan(&n); err != nil || n != 2 {
			t.Errorf("%d rows, %v; want 2: it does not lag any more", n, err)
		}
	})
}

// TestPooler: connections share two sessions, and wait for them no longer than they may.
func TestPooler(t *testing.T) {
	each(t, simdb.Knobs{Pooler: 2}, func(t *testing.T, sdb *simdb.Database, connect func(simdb.Gate) *gorm.DB) {
		seen := make(map[int64]bool)
		db := connect(gateFunc(func(_ context.Context, c simdb.Call) simdb.Fate {
			seen[c.Session] = true
			return simdb.Execute
		}))
		one, two := db.Begin(), db.Begin()
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := db.WithContext(short).Exec("SAVEPOINT a").Error; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error is %v", err)
		}
		done := make(chan error)
		go func() { done <- db.Create(&Order{No: "a"}).Error }()
		synctest.Wait()
		one.Commit()
		if err := <-done; err != nil {
			t.Error(err)
		}
		two.Rollback()
		for id := range seen {
			sdb.KillSession(id)
		}
		for i := range 5 { // a connection may meet the end of its session
			if err := db.Create(&Order{No: "b"}).Error; err == nil {
				break
			} else if i == 4 {
				t.Error(err)
			}
		}
	})
}

// TestLate: the server executes a COMMIT after its client has given up.
func TestLate(t *testing.T) {
	each(t, simdb.Knobs{}, func(t *testing.T, sdb *simdb.Database, connect func(simdb.Gate) *gorm.DB) {
		db := connect(gateFunc(func(_ context.Context, c simdb.Call) simdb.Fate {
			if c.Text == "COMMIT" && len(sdb.Late()) == 0 {
				return simdb.Late
			}
			return simdb.Execute
		}))
		if err := db.Create(&Order{No: "a"}).Error; err == nil {
			t.Error("a commit without an answer succeeded")
		}
		if rows := sdb.Rows("orders"); len(rows) != 0 {
			t.Errorf("rows are %v", rows)
		}
		sdb.ExecuteLate(0)
		synctest.Wait()
		if rows := sdb.Rows("orders"); len(rows) != 1 {
			t.Errorf("rows are %v", rows)
		}
	})
}

// TestCutAfterTheDeadline: the server executes a statement whose client has given up.
func TestCutAfterTheDeadline(t *testing.T) {
	each(t, simdb.Knobs{}, func(t *testing.T, sdb *simdb.Database, _ func(simdb.Gate) *gorm.DB) {
		pool := sqlOpen(t, sdb.Connector("p", gateFunc(func(ctx context.Context, c simdb.Call) simdb.Fate {
			if !strings.HasPrefix(c.Text, "INSERT") {
				return simdb.Execute
			}
			<-ctx.Done()
			return simdb.CutAfter
		})))
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := pool.ExecContext(short, "INSERT INTO orders (no) VALUES ('a')"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error is %v", err)
		}
		synctest.Wait()
		if rows := sdb.Rows("orders"); len(rows) != 1 {
			t.Errorf("rows are %v", rows)
		}
	})
}

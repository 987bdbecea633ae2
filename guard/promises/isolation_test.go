package promises_test

import (
	"context"
	"testing"

	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/guard/guardtest"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/notify"
)

// TestIsolation: the verdicts are the same with a snapshot and without one.
func TestIsolation(t *testing.T) {
	for _, level := range []string{"REPEATABLE-READ", "READ-COMMITTED"} {
		t.Run(level, func(t *testing.T) {
			dsn := teststack.MySQL(t)
			setting := "&transaction_isolation=%27" + level + "%27"
			db := testdb.OpenMySQL(t, dsn)
			if err := db.Exec("SELECT @@transaction_isolation").Error; err != nil {
				setting = "&tx_isolation=%27" + level + "%27" // MariaDB before 11.1
			}
			open := func(opts ...gorm.Option) *gorm.DB { return testdb.OpenMySQL(t, dsn+setting, opts...) }
			db = open()
			wantNil(t, db.AutoMigrate(&Order{}, &Stock{}))
			e := &env{t: t, db: db, Guard: guardtest.New(t, db), open: open}
			e.create(&Stock{ID: 1, Left: 9})

			wantNil(t, e.Apply(bg, "order:a", guard.Insert(&Order{No: "a"})))
			wantIs(t, e.Apply(bg, "order:a", guard.Insert(&Order{No: "a"})), guard.ErrDuplicate)
			wantNil(t, e.Apply(bg, "sku:1", guard.Update(&Stock{ID: 1}, take)))
			wantIs(t, e.Apply(bg, "sku:1", guard.Update(&Stock{ID: 1, Version: 1}, take)), guard.ErrStale)
			e.wantNoEvent()

			err := e.Do(bg, "order:b", func(ctx context.Context, tx *gorm.DB) error {
				e.loseTo("order:b", guard.Insert(&Order{No: "b"}).Run)
				return guard.Insert(&Order{No: "b"}).Run(ctx, tx)
			}, guard.Protects(&Order{No: "b"}))
			wantIs(t, err, guard.ErrIntercepted)
			e.wantEvent(notify.VerdictOverlap, notify.OutcomeRefused, "order:b")

			wantIs(t, e.Apply(bg, "sku:1", guard.Update(&Stock{ID: 1}, func(s *Stock) error {
				e.loseTo("sku:1", guard.Update(&Stock{ID: 1}, take).Run)
				return take(s)
			})), guard.ErrIntercepted)
			if events := e.Events.All(); len(events) != 2 || events[1].Verdict != notify.VerdictOverlap {
				t.Errorf("events are %+v, want two overlaps", events)
			}
			if s := e.stock(1); s.Left != 7 {
				t.Errorf("left %d, want 7", s.Left)
			}
		})
	}
}

// TestIsolationOfASession: a session that goes back to the pool at another isolation
// level has no snapshot any more, and overlaps on it would look like repeats.
func TestIsolationOfASession(t *testing.T) {
	const set = "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED"
	mysqlOnly(t, func(e *env) {
		pool, err := e.db.DB()
		wantNil(e.t, err)
		pool.SetMaxOpenConns(1) // the session comes back at once
		rival := e.open()
		wantIs(e.t, e.Do(bg, "report", func(_ context.Context, tx *gorm.DB) error { return tx.Exec(set).Error }), guard.ErrTxControl)
		overlaps := func(no string) {
			err := e.Do(bg, "order:"+no, func(ctx context.Context, tx *gorm.DB) error {
				if err := rival.Create(&Order{No: no}).Error; err != nil { // while this one has the lock
					return err
				}
				return guard.Insert(&Order{No: no}).Run(ctx, tx)
			}, guard.Protects(&Order{No: no}))
			wantIs(e.t, err, guard.ErrIntercepted)
			e.wantOverlaps("order:"+no, 1)
		}
		overlaps("a")
		wantNil(e.t, e.db.Exec(set).Error) // outside of an operation
		overlaps("b")
	})
}

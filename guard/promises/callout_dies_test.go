package promises_test

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/guard/guardtest"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/once"
)

// A Charge is what a provider has done for an id, in a table that all processes see.
type Charge struct {
	ID string `gorm:"primaryKey;size:64"`
}

// buying is a Call whose provider has the table of charges. at is called at each of its steps.
func buying(db *gorm.DB, at func(step string)) guard.Call[int, string, string] {
	return guard.Call[int, string, string]{
		Name: "take",
		Reserve: func(ctx context.Context, tx *gorm.DB, _ int) error {
			err := takeOne(1)(ctx, tx)
			at("reserving")
			return err
		},
		Do: func(_ context.Context, id string, _ int) (string, error) {
			at("reserved")
			err := db.Clauses(clause.OnConflict{DoNothing: true}).Create(&Charge{ID: id}).Error
			at("charged")
			return id, err
		},
		Settle: func(ctx context.Context, tx *gorm.DB, _ int, o guard.Outcome[string]) (string, error) {
			err := guard.Insert(&Order{No: o.Value[:20]}).Run(ctx, tx)
			at("settling")
			return o.Value, err
		},
		Until: time.Hour,
	}
}

// dieAt kills the child at its step.
func (t task) dieAt(step string) {
	if step != t.Dies {
		return
	}
	self, err := os.FindProcess(os.Getpid())
	if err == nil {
		_ = self.Kill()
		select {}
	}
}

// TestProcessDiesInCall: wherever a process is killed, another one goes on by a repeat when the lease
// has ended, and everything happens once.
func TestProcessDiesInCall(t *testing.T) {
	t.Parallel()
	for _, step := range []string{"reserving", "reserved", "charged", "settling"} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			dsn := teststack.MySQL(t)
			db := testdb.OpenMySQL(t, dsn)
			wantNil(t, errors.Join(db.AutoMigrate(&Order{}, &Stock{}, &Charge{}), once.Migrate(bg, db), once.MigrateCalls(bg, db)))
			e := &env{Guard: guardtest.New(t, db), t: t, db: db}
			e.create(&Stock{ID: 1, Left: 9})
			c := startChild(t, task{DSN: dsn, No: step, Dies: step})
			<-c.Exited()
			if !c.WasKilled() {
				t.Fatalf("the child has not died at %s: %v", step, c.Lines())
			}
			run := func() (guard.Answer[string], error) {
				return buying(db, func(string) {}).Run(bg, e.Guard.Guard, printed(step, "5"), 5, guard.Wait(10*time.Second))
			}
			if step != "reserving" { // MySQL may not know yet that the process is dead
				_, err := run()
				wantIs(t, err, guard.ErrBusy)
				wantNil(t, db.Exec("UPDATE belay_pending SET lease_ms = 1").Error)
			}
			first, err := run()
			wantNil(t, err)
			repeat, err := run()
			wantNil(t, err)
			open, err := once.Open(bg, db, 9)
			wantNil(t, err)
			if repeat.Value != first.Value || !repeat.Replayed || e.count(&Charge{}) != 1 || e.count(&Order{}) != 1 || e.stock(1).Left != 8 || len(open) != 0 {
				t.Errorf("answers %+v and %+v, %d charges, %d orders, %d left, pending %+v", first, repeat, e.count(&Charge{}), e.count(&Order{}), e.stock(1).Left, open)
			}
		})
	}
}

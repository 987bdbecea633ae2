package guardtest_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"
	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/guard/guardtest"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/notify"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type Order struct {
	ID uint
	No string `gorm:"size:64;uniqueIndex"`
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
		err := other.Do(ctx, "order:1", guard.Insert(&Order{No: "1"}))
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
	if len(events) != 1 || events[0].Verdict != notify.Lost || events[0].Outcome != notify.Committed {
		t.Errorf("events are %+v, want a lost lock found at the release", events)
	}
	if err := other.Do(ctx, "order:1", guard.Insert(&Order{No: "1"})); err != nil {
		t.Errorf("the key is not free: %v", err)
	}
}

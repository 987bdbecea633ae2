package promises_test

import (
	"context"
	"errors"
	"maps"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/memlock"
	"github.com/belaygo/belay/once"
)

// placing are ways to place an order once, of which a repeat says that it was placed.
var placing = map[string]func(*guard.Guard) error{
	"insert": func(g *guard.Guard) error { return g.Apply(bg, "order:1", guard.Insert(&Order{No: "1"})) },
	"for": func(g *guard.Guard) error {
		return g.Do(bg, "sku:1", place("2"), guard.For(requestOf("for")))
	},
	"once": func(g *guard.Guard) error {
		got, err := guard.Once(bg, g, requestOf("once"), func(ctx context.Context, tx *gorm.DB) (string, error) {
			return "3", place("3")(ctx, tx)
		})
		if got.Replayed {
			return guard.ErrDuplicate
		}
		return err
	},
}

// served asks for a request of placing. A repeat is what it finds.
func served(g *guard.Guard) error {
	found, err := g.Served(bg, requestOf("for"))
	if found {
		return guard.ErrDuplicate
	}
	return err
}

func requestOf(id string) once.Request {
	return once.Request{Operation: "order", Scope: once.Anyone, ID: id}
}

func place(no string) guard.Op {
	return func(_ context.Context, tx *gorm.DB) error { return tx.Create(&Order{No: no}).Error }
}

// placeUnsafely places on a database whose standby is away. Each COMMIT is given up; a busy machine
// may give up something before it, which leaves nothing.
func placeUnsafely(t *testing.T, db *gorm.DB) {
	t.Helper()
	for way, do := range placing {
		testwait.Until(t, "a COMMIT is given up: "+way, func() bool { return errors.Is(do(alone(t, db, soon)), guard.ErrUnknown) })
	}
}

// wantNoRepeats wants that no repeat is told so: no standby has its row. The driver has
// cancelled the COMMITs, some perhaps before the server got them: these are cancelled again.
func wantNoRepeats(t *testing.T, db *gorm.DB) {
	t.Helper()
	testwait.Until(t, "the rows are visible", func() bool {
		wantNil(t, db.Exec("SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND query ILIKE 'commit%'").Error)
		var n int64
		return db.Model(&Order{}).Count(&n).Error == nil && n == int64(len(placing))
	})
	for way, do := range repeats() {
		if err := do(alone(t, db, soon)); err == nil || errors.Is(err, guard.ErrDuplicate) {
			t.Errorf("%s: a repeat got %v, though no standby has the row", way, err)
		}
	}
}

// repeats are placing and served.
func repeats() map[string]func(*guard.Guard) error {
	all := maps.Clone(placing)
	all["served"] = served
	return all
}

// TestRepeatAwaitsTheStandby: the driver cancels COMMITs that wait for the standby. Their rows are
// visible then, and a promotion would lose them. A repeat is told that they are there only
// after the standby has them.
func TestRepeatAwaitsTheStandby(t *testing.T) {
	db := testdb.OpenPostgres(t, teststack.StartPostgres(t, "repeats"))
	wantNil(t, db.AutoMigrate(&Order{}))
	wantNil(t, once.Migrate(bg, db))
	testdb.SetStandby(t, db, "nobody")
	placeUnsafely(t, db)
	wantNoRepeats(t, db)
	testdb.SetStandby(t, db, "")
	for _, do := range repeats() {
		wantIs(t, do(alone(t, db, 0)), guard.ErrDuplicate)
	}
}

// soon is long enough for a COMMIT to be sent, and short where it must be given up.
const soon = 300 * time.Millisecond

// alone returns a Guard whose locks nobody else has, and which gives up a silent database after
// endTimeout, or its default if that is 0.
func alone(t *testing.T, db *gorm.DB, endTimeout time.Duration) *guard.Guard {
	t.Helper()
	locker, err := lock.New(memlock.New(), lock.Config{})
	wantNil(t, err)
	t.Cleanup(func() { wantNil(t, locker.Close(bg)) })
	g, err := guard.New(db, locker, guard.Config{Service: "test", EndTimeout: endTimeout})
	wantNil(t, err)
	t.Cleanup(func() { wantNil(t, g.Close(bg)) })
	return g
}

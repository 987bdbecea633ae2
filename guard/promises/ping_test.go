package promises_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/lock/memlock"
)

// unreachable is an engine that does not answer a Ping.
type unreachable struct{ lockengine.Engine }

func (unreachable) Ping(context.Context) error { return errBroken }

func (unreachable) Probe(context.Context, string) error { return errBroken }

// TestPingFollowsThePolicy: an instance that goes on without the lock is ready without
// it, or a dead Redis would take all of them out of service.
func TestPingFollowsThePolicy(t *testing.T) {
	locker, err := lock.New(unreachable{memlock.New()}, lock.Config{})
	wantNil(t, err)
	defer locker.Close(bg)
	db := testdb.OpenSQLite(t, filepath.Join(t.TempDir(), "a.db"))
	ping := func(p guard.Policy) error {
		g, err := guard.New(db, locker, guard.Config{Service: "s", OnUnavailable: p})
		wantNil(t, err)
		defer g.Close(bg)
		return g.Ping(bg)
	}
	wantIs(t, ping(guard.FailClosed), errBroken)
	wantNil(t, ping(guard.DBOnly))
	pool, err := db.DB()
	wantNil(t, err)
	wantNil(t, pool.Close())
	if ping(guard.DBOnly) == nil {
		t.Error("ready without a database")
	}
}

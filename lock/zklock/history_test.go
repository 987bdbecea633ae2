package zklock_test

import (
	"testing"
	"time"

	"github.com/belaygo/belay/internal/lockhistory"
	"github.com/belaygo/belay/internal/teststack"
)

// sessionTimeout is the shortest for the histories' longest ttl, of 20 seconds.
const sessionTimeout = 28 * time.Second

// The leader is killed, and started again when another has followed; then that one stands
// still for so long that it is deposed. A process that stands still, and one that is killed,
// keeps its locks until its session expires, and does not believe in them any more then.
func TestHistory(t *testing.T) {
	ensemble := teststack.StartZooKeeper(t, "zkhistory")
	r := root(t)
	lockhistory.Test(t, lockhistory.Setup{
		Where:  where(r, sessionTimeout, ensemble.Addrs),
		Key:    func(name string) string { return name },
		Engine: open(t, r, ensemble.Addrs),
		Break: func(t *testing.T) {
			t.Helper()
			lead(t, ensemble, "kill", "start")
			lead(t, ensemble, "pause", "resume")
		},
	})
}

// lead has another node become the leader between two commands on the one that is it.
func lead(t *testing.T, ensemble *teststack.Ensemble, stop, start string) {
	t.Helper()
	leader := ensemble.Leader(t)
	ensemble.Node(t, stop, leader)
	ensemble.Leader(t)
	ensemble.Node(t, start, leader)
}

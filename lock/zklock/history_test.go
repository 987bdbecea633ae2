package zklock_test

import (
	"testing"
	"time"

	"github.com/belaygo/belay/internal/lockhistory"
	"github.com/belaygo/belay/internal/teststack"
)

// sessionTimeout is the shortest for the histories' longest ttl, of 20 seconds.
const sessionTimeout = 28 * time.Second

// The leader is killed, and started again when another has followed; and it stands still for
// so long that it is deposed. A process that stands still, and one that is killed, keeps its
// locks until its session expires, and does not believe in them any more then.
func TestHistory(t *testing.T) {
	for name, fail := range map[string]func(*testing.T, *teststack.Ensemble){
		"LeaderKilled": leaderKilled, "LeaderPaused": leaderPaused,
	} {
		t.Run(name, func(t *testing.T) {
			ensemble := teststack.StartZooKeeper(t, "zkhistory")
			r := root(t)
			lockhistory.Test(t, lockhistory.Setup{
				Where:  where(r, sessionTimeout, ensemble.Addrs),
				Key:    func(name string) string { return name },
				Engine: open(t, r, ensemble.Addrs),
				Break:  func(t *testing.T) { fail(t, ensemble) },
			})
		})
	}
}

func leaderKilled(t *testing.T, ensemble *teststack.Ensemble) {
	leader := ensemble.Leader(t)
	ensemble.Node(t, "kill", leader)
	ensemble.Leader(t)
	ensemble.Node(t, "start", leader)
}

func leaderPaused(t *testing.T, ensemble *teststack.Ensemble) {
	leader := ensemble.Leader(t)
	ensemble.Node(t, "pause", leader)
	ensemble.Leader(t)
	ensemble.Node(t, "resume", leader)
}

package zklock_test

import (
	"testing"
	"time"

	"github.com/belaygo/belay/internal/lockhistory"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/lock/locktest"
)

// sessionTimeout is the shortest for the histories' longest ttl, of 20 seconds.
const sessionTimeout = 28 * time.Second

// The leader is killed, and started again when another has followed; then that one stands
// still for so long that it is deposed; one server, and then all, lose their answers for longer
// than the ttl; and a leader is cut off from its peers. A process that stands still, and one
// that is killed, keeps its locks until its session expires, and does not believe in them any
// more then.
func TestHistory(t *testing.T) {
	ensemble := teststack.StartZooKeeper(t, "zkhistory")
	var links []*locktest.Link
	var reach []string
	for _, addr := range ensemble.Addrs {
		k := locktest.NewLink(t, addr)
		links, reach = append(links, k), append(reach, k.Addr)
	}
	r := root(t)
	breaks := []lockhistory.Break{
		{Name: "leader killed", Do: func(t *testing.T) { lead(t, ensemble, "kill", "start") }},
		{Name: "leader paused", Do: func(t *testing.T) { lead(t, ensemble, "pause", "resume") }},
		lockhistory.CutOff("one cut off", links[0]), lockhistory.CutOff("all cut off", links...),
	}
	if ensemble.Network {
		breaks = append(breaks, lockhistory.Outage("leader without its peers", func(t *testing.T) func() {
			t.Helper()
			leader := ensemble.Leader(t)
			ensemble.Node(t, "cut", leader)
			return func() { ensemble.Node(t, "mend", leader) }
		}))
	}
	lockhistory.Test(t, lockhistory.Setup{
		Where:  where(r, sessionTimeout, reach),
		Key:    func(name string) string { return name },
		Engine: open(t, r, reach),
		Breaks: breaks,
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

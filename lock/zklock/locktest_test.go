package zklock_test

import (
	"testing"

	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/lock/locktest"
)

func TestContract(t *testing.T) {
	servers := teststack.ZooKeeper(t)
	locktest.Test(t, func(t *testing.T) locktest.Setup {
		r := root(t)
		links, fault := link(t, servers)
		return locktest.Setup{
			Engine: open(t, r, links), Other: open(t, r, servers), Fault: fault,
			Wakes: true, Tokens: true, Nodes: true, Probes: true, Bound: true,
		}
	})
}

// link has all servers behind links, which fail together.
func link(t *testing.T, servers []string) (addrs []string, fault func(locktest.Fault) func()) {
	t.Helper()
	var links []*locktest.Link
	for _, server := range servers {
		k := locktest.NewLink(t, server)
		links, addrs = append(links, k), append(addrs, k.Addr)
	}
	return addrs, func(f locktest.Fault) func() {
		var heals []func()
		for _, k := range links {
			heals = append(heals, k.Fault(f))
		}
		return func() {
			for _, heal := range heals {
				heal()
			}
		}
	}
}

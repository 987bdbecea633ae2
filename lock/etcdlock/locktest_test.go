package etcdlock_test

import (
	"testing"

	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/lock/locktest"
)

func TestContract(t *testing.T) {
	members := teststack.Etcd(t)
	locktest.Test(t, func(t *testing.T) locktest.Setup {
		p := prefix(t)
		links, fault := link(t, members)
		return locktest.Setup{
			Engine: open(t, p, links), Other: open(t, p, members), Fault: fault,
			Wakes: true, Tokens: true, Nodes: true, Probes: true,
		}
	})
}

// link has all members behind links, which fail together.
func link(t *testing.T, members []string) (addrs []string, fault func(locktest.Fault) func()) {
	t.Helper()
	var links []*locktest.Link
	for _, member := range members {
		k := locktest.NewLink(t, member)
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

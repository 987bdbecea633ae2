package quorumlock_test

import (
	"errors"
	"testing"

	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/lock/locktest"
)

// TestContractOnMemory has three nodes, and TestContract five.
func TestContractOnMemory(t *testing.T) {
	nodes := memlocks(3)
	locktest.Test(t, func(t *testing.T) locktest.Setup {
		return locktest.Setup{
			Engine: over(t, nodes...), Other: over(t, nodes...),
			Marks: true, Tokens: true, Nodes: true, Probes: true,
		}
	})
}

// The servers have just been started, so they are said to forget nothing.
func TestContract(t *testing.T) {
	servers := addrs(startServers(t))
	for name, cut := range map[string]int{"all": 5, "majority": 3} {
		t.Run(name, func(t *testing.T) {
			locktest.Test(t, func(t *testing.T) locktest.Setup {
				links, fault := link(t, servers, cut)
				return locktest.Setup{
					Engine: open(t, durable, links...), Other: open(t, durable, servers...), Fault: fault,
					Wakes: true, Marks: true, Tokens: true, Nodes: true, Probes: true,
				}
			})
		})
	}
}

// link has the first servers behind links, which fail together.
func link(t *testing.T, servers []string, n int) (all []string, fault func(locktest.Fault) func()) {
	t.Helper()
	all = append(all, servers...)
	var links []*locktest.Link
	for i := range n {
		link := locktest.NewLink(t, servers[i])
		all[i], links = link.Addr, append(links, link)
	}
	return all, func(f locktest.Fault) func() {
		var heals []func()
		for _, link := range links {
			heals = append(heals, link.Fault(f))
		}
		return func() {
			for _, heal := range heals {
				heal()
			}
		}
	}
}

// A minority that can't be reached, or does not answer, changes nothing for callers.
func TestMinorityIsCutOff(t *testing.T) {
	servers := addrs(startServers(t))
	for _, f := range []locktest.Fault{locktest.RefuseDials, locktest.SwallowRequests, locktest.SwallowAnswers, locktest.CutAfterRequest} {
		t.Run(string(f), func(t *testing.T) {
			links, fault := link(t, servers, 2)
			e, other := open(t, durable, links...), open(t, durable, servers...)
			acquire(t, e, mine)
			release(t, e, mine)
			defer fault(f)()
			for range 5 {
				testwait.Until(t, "free on all nodes", func() bool { // a release returns at the majority
					_, err := e.Acquire(t.Context(), mine, ttl)
					return err == nil
				})
				_, err := e.Acquire(t.Context(), theirs, ttl)
				wantHeld(t, err, mine.Owner)
				if errs := e.Renew(t.Context(), []lockengine.Request{mine, theirs}, ttl); errs[0] != nil || !errors.Is(errs[1], lockengine.ErrNotHeld) {
					t.Errorf("Renew: %v", errs)
				}
				if h, err := e.Inspect(t.Context(), mine.Key); err != nil || h.Owner != mine.Owner {
					t.Errorf("Inspect: %+v, %v", h, err)
				}
				release(t, e, mine)
				wantIs(t, e.Release(t.Context(), mine), lockengine.ErrNotHeld)
				testwait.Until(t, "free on all nodes", func() bool {
					_, err := other.Acquire(t.Context(), theirs, ttl)
					return err == nil
				})
				release(t, other, theirs)
				if err := errors.Join(e.Ping(t.Context()), e.Probe(t.Context(), mine.Key)); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

package etcdlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/belaygo/belay/internal/lockhistory"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
	"github.com/belaygo/belay/lock/locktest"
)

// The leader of three members is killed, another one stands still for longer than the ttl,
// and one is cut off from its peers; one member, and then all, lose their answers for so long.
func TestHistory(t *testing.T) {
	teststack.Etcd(t) // where there is one, there may be another
	bed := teststack.StartBed(t, "etcd", teststack.BedConfig{Servers: []string{"etcd"}, Network: true})
	members := bed.Endpoints(t)
	var links []*locktest.Link
	var reach []string
	for _, member := range members {
		k := locktest.NewLink(t, member)
		links, reach = append(links, k), append(reach, k.Addr)
	}
	p := prefix(t)
	away := func(name, stop, start string) lockhistory.Break {
		return lockhistory.Outage(name, func(t *testing.T) func() {
			t.Helper()
			node := leader(t, members)
			bed.Stack(t, stop, node)
			return func() { bed.Stack(t, start, node) }
		})
	}
	breaks := []lockhistory.Break{
		away("leader killed", "kill", "start"), away("leader paused", "pause", "resume"),
		lockhistory.CutOff("one cut off", links[0]), lockhistory.CutOff("all cut off", links...),
	}
	if bed.Network {
		breaks = append(breaks, away("leader without its peers", "cut", "mend"))
	}
	lockhistory.Test(t, lockhistory.Setup{
		Where:  where(p, reach),
		Key:    func(name string) string { return name },
		Engine: open(t, p, reach),
		Breaks: breaks,
	})
}

// leader returns the member that leads.
func leader(t *testing.T, members []string) (node string) {
	t.Helper()
	client, err := dial(members)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	testwait.Until(t, "there is a leader", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		for i, member := range members {
			s, err := client.Status(ctx, member)
			if err == nil && s.Leader == s.Header.MemberId {
				node = []string{"etcd-1", "etcd-2", "etcd-3"}[i]
				return true
			}
		}
		return false
	})
	return node
}

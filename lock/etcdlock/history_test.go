package etcdlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/belaygo/belay/internal/lockhistory"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/internal/testwait"
)

// The leader of three members is killed, and another one stands still for longer than the
// ttl.
func TestHistory(t *testing.T) {
	teststack.Etcd(t) // where there is one, there may be another
	bed := teststack.StartBed(t, "etcd", teststack.BedConfig{Servers: []string{"etcd"}})
	members := bed.Endpoints(t)
	for name, end := range map[string][2]string{"Killed": {"kill", "start"}, "Paused": {"pause", "resume"}} {
		t.Run(name, func(t *testing.T) {
			p := prefix(t)
			lockhistory.Test(t, lockhistory.Setup{
				Where:  where(p, members),
				Key:    func(name string) string { return name },
				Engine: open(t, p, members),
				Break: func(t *testing.T) {
					t.Helper()
					node := leader(t, members)
					bed.Stack(t, end[0], node)
					<-time.After(4 * time.Second) // longer than the ttl
					bed.Stack(t, end[1], node)
				},
			})
		})
	}
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

package switchlock_test

import (
	"testing"

	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/lock/locktest"
	"github.com/belaygo/belay/lock/memlock"
	"github.com/belaygo/belay/lock/switchlock"
)

// The contract holds before a switch, while locks move, and when they have moved.
func TestContract(t *testing.T) {
	for name, record := range map[string]switchlock.Record{
		"before":    {Epoch: 1, From: "a", To: "a", Settled: true},
		"moving":    {Epoch: 2, From: "a", To: "b"},
		"goingBack": {Epoch: 3, From: "b", To: "a"},
		"settled":   {Epoch: 2, From: "a", To: "b", Settled: true},
	} {
		record.Lease, record.TTL, record.Cross = lease, longest, longest
		t.Run(name, func(t *testing.T) {
			locktest.Test(t, func(t *testing.T) locktest.Setup {
				source := &store{record: record}
				engines := map[string]lock.Engine{"a": memlock.New(), "b": memlock.New()}
				cfg := switchlock.Config{Source: source, Engines: engines, First: "a"}
				return locktest.Setup{
					Engine: open(t, cfg), Other: open(t, cfg),
					Marks: true, Tokens: true, Nodes: true, Probes: true,
				}
			})
		})
	}
}

package switchlock_test

import (
	"testing"

	"github.com/belaygo/belay/internal/testdb"
	"github.com/belaygo/belay/internal/teststack"
	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/lock/locktest"
	"github.com/belaygo/belay/lock/memlock"
	"github.com/belaygo/belay/lock/sqllock"
	"github.com/belaygo/belay/lock/switchlock"
)

// The contract holds before a switch, while locks move, and when they have moved. TestContractOnServers
// moves them back, too.
func TestContract(t *testing.T) {
	for name, record := range map[string]switchlock.Record{
		"before":  {Epoch: 1, From: "a", To: "a", Settled: true},
		"moving":  {Epoch: 2, From: "a", To: "b"},
		"settled": {Epoch: 2, From: "a", To: "b", Settled: true},
	} {
		record.Lease, record.TTL, record.Cross = lease, longest, longest
		t.Run(name, func(t *testing.T) {
			locktest.Test(t, func(t *testing.T) locktest.Setup {
				engines := map[string]lockengine.Engine{"a": memlock.New(), "b": memlock.New()}
				cfg := switchlock.Config{Source: &store{record: record}, Engines: engines, First: "a"}
				return locktest.Setup{
					Engine: open(t, cfg), Other: open(t, cfg),
					Marks: true, Tokens: true, Nodes: true, Probes: true,
				}
			})
		})
	}
}

// The contract holds while locks move between a Redis and a table, which fail together. A lock that
// moves has no one place: it is granted at that of the new engine, and refused at that of the old one.
func TestContractOnServers(t *testing.T) {
	direct := place{Redis: startRedis(t).Addr, SQL: teststack.MySQL(t)}
	migrate(t, "mysql", direct.SQL, sqllock.MySQL)
	for name, record := range map[string]switchlock.Record{
		"moving":    {Epoch: 2, From: "redis", To: "sql"},
		"goingBack": {Epoch: 3, From: "sql", To: "redis"},
	} {
		record.Lease, record.TTL, record.Cross = lease, longest, longest
		t.Run(name, func(t *testing.T) {
			locktest.Test(t, func(t *testing.T) locktest.Setup {
				source := &store{record: record}
				engine := func(p place) lockengine.Engine {
					engines, err := p.engines(t.Cleanup)
					if err != nil {
						t.Fatal(err)
					}
					e := open(t, switchlock.Config{Source: source, Engines: engines, First: "redis"})
					eventually(t, "those who wait are woken", func() bool {
						stop, err := e.Watch(t.Context(), "k", func() {})
						if err == nil {
							stop()
						}
						return err == nil
					})
					return e
				}
				inRedis := locktest.NewLink(t, direct.Redis)
				inSQL := locktest.NewLink(t, testdb.AddrOf(t, direct.SQL))
				return locktest.Setup{
					Engine: engine(place{Redis: inRedis.Addr, SQL: testdb.By(t, direct.SQL, inSQL.Addr)}),
					Other:  engine(direct),
					Fault: func(f locktest.Fault) func() {
						heals := []func(){inRedis.Fault(f), inSQL.Fault(f)}
						return func() {
							for _, heal := range heals {
								heal()
							}
						}
					},
					Wakes: true, Marks: true, Tokens: true, Probes: true,
				}
			})
		})
	}
}

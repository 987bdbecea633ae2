package watch

import (
	"context"
	"fmt"
	"slices"

	"github.com/redis/go-redis/v9"
)

// sentinel queries the Sentinels, one after the other until one answers, for the
// master and its replicas, and makes them the nodes to query.
func (t *target) sentinel(ctx context.Context, r *round) {
	ctx, cancel := context.WithTimeout(ctx, t.timeout())
	defer cancel()
	var lists []string
	for i, addr := range t.cfg.Addrs {
		limited, stop := context.WithTimeout(ctx, t.timeout()/2)
		master, list, err := t.askSentinel(limited, addr)
		stop()
		if r.leaderless = err; err == nil {
			r.master, lists = master, list
			if i > 0 { // from now on, the one that answers comes first
				t.cfg.Addrs = slices.Insert(slices.Delete(slices.Clone(t.cfg.Addrs), i, i+1), 0, addr)
			}
			break
		}
	}
	if r.master == "" {
		if r.master = t.state.master; r.master == "" {
			t.roster = nil
		}
		return
	}
	t.roster = lists
	for addr := range t.state.nodes { // a master that was replaced may come back
		if !slices.Contains(t.roster, addr) && len(t.roster) < maxNodes {
			t.roster = append(t.roster, addr)
		}
	}
}

func (t *target) askSentinel(ctx context.Context, addr string) (master string, nodes []string, err error) {
	options := t.options(addr)
	options.Username, options.Password = t.cfg.SentinelUsername, t.cfg.SentinelPassword
	c := redis.NewSentinelClient(options)
	defer c.Close()
	where, err := c.GetMasterAddrByName(ctx, t.cfg.Master).Result()
	if err != nil {
		return "", nil, fmt.Errorf("sentinel %s: %w", addr, err)
	}
	if len(where) == 2 {
		master = join(where[0], where[1])
	}
	if !usable(master) {
		return "", nil, fmt.Errorf("sentinel %s: the master's address is %.80q", addr, where)
	}
	nodes = []string{master}
	replicas, _ := c.Replicas(ctx, t.cfg.Master).Result()
	for _, m := range replicas {
		if addr := join(m["ip"], m["port"]); usable(addr) && addr != master && len(nodes) < maxNodes {
			nodes = append(nodes, addr)
		}
	}
	return master, nodes, nil
}

package watch

import (
	"maps"
	"net"
	"slices"
	"time"
)

// downAfter is how many rounds without an answer make a node down. A refused
// connection does so at once.
const downAfter = 3

// stall is the shortest silence of a node that the timeline tells of when it was
// over before the node was down.
const stall = 2 * time.Second

// cluster is a target as it was after the last round.
type cluster struct {
	Cluster
	nodes  map[string]*Node
	owners []owner
	master string               // outside a Redis Cluster
	ruled  time.Time            // when the owners, or the master, were last seen
	splits map[string]split     // by the node that others disagree about, or with
	seen   map[string]time.Time // when each address that was ever in it answered last
}

// round is what all nodes said.
type round struct {
	ended      time.Time
	blind      bool // the watcher itself came too late to blame a node
	looks      map[string]*look
	master     string // what the Sentinels say
	leaderless error  // why none of them names a master
	mode       Mode
}

func newCluster(name string) *cluster {
	return &cluster{
		Cluster: Cluster{Name: name},
		nodes:   make(map[string]*Node),
		splits:  make(map[string]split),
		seen:    make(map[string]time.Time),
	}
}

// note remembers when a node answered last, beyond its membership.
func (c *cluster) note(n *Node) {
	if _, known := c.seen[n.Addr]; known || len(c.seen) < maxNodes {
		c.seen[n.Addr] = n.SeenAt
	}
}

// compare takes in a round and returns what has changed since the last.
func (c *cluster) compare(r *round) []Entry {
	d := &changes{cluster: c, round: r}
	switch {
	case c.Since.IsZero():
		c.Since = r.ended
		d.add(Entry{Kind: Watching})
	case r.blind:
		c.Since = r.ended
		d.add(Entry{Kind: Watching, Since: c.SeenAt})
	}
	if r.mode != Undetermined {
		c.Mode = r.mode
	}
	for _, addr := range slices.Sorted(maps.Keys(r.looks)) {
		d.node(addr, r.looks[addr])
	}
	d.forget()
	if c.Mode == Clustered {
		d.shards()
	} else {
		d.lead()
	}
	d.disagreements()
	c.SeenAt = r.ended
	c.publish()
	return d.entries
}

// changes gathers the entries of one round.
type changes struct {
	*cluster
	round   *round
	entries []Entry
}

func (d *changes) add(e Entry) {
	e.Cluster, e.At = d.Name, d.round.ended
	d.entries = append(d.entries, e)
}

// about adds an entry on a node.
func (d *changes) about(n *Node, e Entry) {
	e.Node, e.Shard = n.Addr, n.Shard
	d.add(e)
}

// forget drops the nodes that nobody asks any more.
func (d *changes) forget() {
	for addr := range d.nodes {
		if d.round.looks[addr] == nil {
			delete(d.nodes, addr)
			delete(d.splits, addr)
		}
	}
}

// publish makes the lists that others read.
func (c *cluster) publish() {
	c.Nodes, c.Shards = nil, nil
	for _, addr := range slices.Sorted(maps.Keys(c.nodes)) {
		c.Nodes = append(c.Nodes, *c.nodes[addr])
	}
	if c.Mode != Clustered {
		if c.master != "" {
			c.Shards = []Shard{{Master: c.master, Replicas: c.replicas("")}}
		}
		return
	}
	for _, o := range c.owners {
		name := shardName(o.slots)
		c.Shards = append(c.Shards, Shard{
			Name: name, Master: o.addr, Replicas: c.replicas(name), Slots: count(o.slots), Epoch: o.epoch,
		})
	}
}

func (c *cluster) replicas(shard string) (list []string) {
	for _, n := range c.Nodes {
		if n.Role == replica && n.Shard == shard {
			list = append(list, n.Addr)
		}
	}
	return list
}

func join(host, port string) string {
	if host == "" || port == "" {
		return ""
	}
	return net.JoinHostPort(host, port)
}

func flag(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

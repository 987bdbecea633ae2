package watch

import (
	"net"
	"time"
)

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

// split is a disagreement between nodes.
type split struct {
	since   time.Time
	rounds  int
	told    bool
	peer    string
	numbers map[string]int64
	names   map[string]string
}

// round is what all nodes said.
type round struct {
	ended      time.Time
	blind      bool // the watcher itself was late, so silence says nothing of a node
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

package watch

import (
	"maps"
	"slices"
)

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

// forget drops the nodes that are no longer queried.
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

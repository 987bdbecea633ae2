package watch

import (
	"slices"
	"strings"
)

// shards compares the owners of the slots with those before.
func (d *changes) shards() {
	was := d.owners
	now := owners(d.round.looks, was)
	if len(now) == 0 { // no node answers: nothing new is known
		return
	}
	d.owners = now
	d.assign()
	for _, o := range now {
		d.owner(was, o)
	}
	d.ruled = d.round.ended
	for _, n := range d.nodes {
		d.moving(n)
	}
}

// assign notes the shard of each node.
func (d *changes) assign() {
	names := make(map[string]string) // by address of the master
	for _, o := range d.owners {
		names[o.addr] = shardName(o.slots)
	}
	for _, n := range d.nodes {
		of := n.Addr
		if n.Role == replica {
			of = n.Master
		}
		if name, ok := names[of]; ok {
			n.Shard = name
		}
	}
}

// owner compares one shard with what it was.
func (d *changes) owner(was []owner, o owner) {
	old := before(was, o.slots)
	if len(old) == 0 || len(old) == 1 && old[0].id == o.id && slices.Equal(old[0].slots, o.slots) {
		return
	}
	shard := shardName(o.slots)
	if len(old) == 1 && old[0].id != o.id && !d.serves(old[0].id) {
		numbers := d.offsets(old[0].addr, o.addr)
		numbers[OldEpoch], numbers[NewEpoch] = old[0].epoch, o.epoch
		d.add(Entry{Kind: Failover, Since: d.ruled, Shard: shard, Node: o.addr, Peer: old[0].addr, Numbers: numbers})
		return
	}
	var others []string
	for _, p := range old {
		if p.id != o.id {
			others = append(others, p.addr)
		}
	}
	if len(others) == 0 { // it gave slots away: the entry of their new owner says so
		return
	}
	d.add(Entry{
		Kind: Resharding, Since: d.ruled, Shard: shard, Node: o.addr, Peer: others[0],
		Names: map[string]string{From: strings.Join(others, ", ")},
	})
}

// serves reports whether a node still has slots.
func (d *changes) serves(id string) bool {
	return slices.ContainsFunc(d.owners, func(o owner) bool { return o.id == id })
}

// offsets compares the offset of the old master, when it last answered, with that at
// which the new one's own history begins. What lies between was lost.
func (d *changes) offsets(from, to string) map[string]int64 {
	numbers := make(map[string]int64)
	old, now := d.nodes[from], d.nodes[to]
	if old == nil || now == nil || now.Role != master || old.history == "" || now.replID2 != old.history {
		return numbers
	}
	last := old.reached
	numbers[OldOffset], numbers[NewOffset] = last, now.fork-1
	numbers[LostBytes] = max(0, last-(now.fork-1))
	return numbers
}

// moving takes in that slots begin to move.
func (d *changes) moving(n *Node) {
	if n.moving > 0 && n.movingTold == 0 {
		d.about(n, Entry{Kind: Resharding, Since: d.SeenAt, Numbers: map[string]int64{Moving: int64(n.moving)}})
	}
	n.movingTold = n.moving
}

// lead compares the master with the one before, outside a Redis Cluster.
func (d *changes) lead() {
	for _, n := range d.nodes {
		n.Shard = ""
	}
	now := d.leader()
	if now == "" {
		return
	}
	old, since := d.master, d.ruled
	d.master, d.ruled = now, d.round.ended
	if now != old && old != "" {
		d.add(Entry{Kind: Failover, Since: since, Node: now, Peer: old, Numbers: d.offsets(old, now)})
	}
}

// answered reports whether a node did so in this round: what is known of it may
// be old.
func (d *changes) answered(addr string) bool {
	l := d.round.looks[addr]
	return l != nil && l.err == nil
}

// leads reports whether a node says that it is a master.
func (d *changes) leads(addr string) bool {
	return d.answered(addr) && d.nodes[addr].Role == master
}

// leader is the master that answers: the Sentinels' choice, else the one that it
// was, else the only one.
func (d *changes) leader() string {
	if d.round.master != "" {
		if d.leads(d.round.master) {
			return d.round.master
		}
		return ""
	}
	if d.leads(d.master) {
		return d.master
	}
	var found []string
	for addr := range d.nodes {
		if d.leads(addr) {
			found = append(found, addr)
		}
	}
	if len(found) == 1 {
		return found[0]
	}
	return ""
}

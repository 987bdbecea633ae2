package watch

import (
	"maps"
	"slices"
)

// A node must have answered for this many rounds before others are taken to
// disagree with it: after a restart their opinion is only late.
const steady = 3

// disagreements takes in which nodes do not see the same cluster.
func (d *changes) disagreements() {
	found := make(map[string]split)
	d.rivals(found)
	d.doubted(found)
	for _, addr := range slices.Sorted(maps.Keys(d.splits)) {
		old := d.splits[addr]
		if _, ok := found[addr]; ok {
			continue
		}
		delete(d.splits, addr)
		if old.told {
			d.tell(addr, Entry{Kind: Agreed, Since: old.since, Peer: old.peer})
		}
	}
	for _, addr := range slices.Sorted(maps.Keys(found)) {
		d.split(addr, found[addr])
	}
}

// split adds an entry on a disagreement about a node when it is certain.
func (d *changes) split(addr string, s split) {
	old, ok := d.splits[addr]
	if !ok {
		old = split{since: d.SeenAt}
	}
	s.since, s.told, s.rounds = old.since, old.told, s.rounds+old.rounds
	if !s.told && s.rounds >= steady {
		s.told = true
		d.tell(addr, Entry{Kind: Split, Since: s.since, Peer: s.peer, Numbers: s.numbers, Names: s.names})
	}
	d.splits[addr] = s
}

func (d *changes) tell(addr string, e Entry) {
	if n := d.nodes[addr]; n != nil {
		d.about(n, e)
	}
}

// rivals are masters that serve the same slots, or outside a Redis Cluster two
// masters where one was. One look is enough to be certain of them.
func (d *changes) rivals(found map[string]split) {
	if d.Mode != Clustered {
		for addr := range d.nodes {
			if addr != d.master && d.round.master != "" && d.leads(addr) && d.leads(d.master) {
				found[addr] = split{rounds: steady, peer: d.master}
			}
		}
		return
	}
	for addr, l := range d.round.looks {
		me, ok := l.me()
		if !ok || !me.master || l.err != nil {
			continue
		}
		for _, o := range before(d.owners, me.slots) {
			if o.id != me.id && o.own {
				found[addr] = split{rounds: steady, peer: o.addr, names: map[string]string{Slots: shardName(o.slots)},
					numbers: map[string]int64{Epoch: me.epoch, PeerEpoch: o.epoch}}
			}
		}
	}
}

// doubted are nodes that answer here, but not to other nodes.
func (d *changes) doubted(found map[string]split) {
	doubts := make(map[string][]string)
	for _, addr := range slices.Sorted(maps.Keys(d.round.looks)) {
		for _, m := range d.round.looks[addr].view {
			if n := d.nodes[m.addr]; (m.doubt || m.failed) && n != nil && n.answers >= steady && d.answered(m.addr) {
				doubts[m.addr] = append(doubts[m.addr], addr)
			}
		}
	}
	for addr, by := range doubts {
		if _, ok := found[addr]; !ok {
			found[addr] = split{rounds: 1, peer: by[0], numbers: map[string]int64{SeenBy: int64(len(by))}}
		}
	}
}

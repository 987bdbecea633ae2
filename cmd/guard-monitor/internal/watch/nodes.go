package watch

import "time"

// downAfter is how many rounds without an answer make a node down. A refused
// connection does so at once.
const downAfter = 3

// stall is the shortest silence of a node that the timeline tells of when it was
// over before the node was down.
const stall = 2 * time.Second

// node takes in what one node said.
func (d *changes) node(addr string, l *look) {
	n := d.nodes[addr]
	if n == nil {
		n = &Node{Addr: addr, Up: true}
		d.nodes[addr] = n
		d.note(n)
	}
	switch {
	case l.denied:
		n.shut(l)
		return
	case l.err != nil:
		d.silent(n, l)
		return
	}
	was := *n
	n.update(l)
	d.note(n)
	d.returned(n, &was)
	if was.RunID != "" && was.RunID != n.RunID {
		d.restarted(n, &was)
	}
	d.removed(n, &was, l)
	d.service(n, &was)
}

// silent takes in that a node did not answer.
func (d *changes) silent(n *Node, l *look) {
	if d.round.blind {
		return
	}
	n.Error, n.answers = l.err.Error(), 0
	n.failures++
	if n.failures == 1 {
		n.DownAt = l.at.Add(-l.took)
	}
	if !n.Up || n.failures < downAfter && !l.refused {
		return
	}
	n.Up = false
	e := Entry{Kind: Down, Since: n.SeenAt, Numbers: map[string]int64{Refused: flag(l.refused)}}
	if n.Role != "" {
		e.Names = map[string]string{Role: n.Role}
	}
	d.about(n, e)
}

// returned takes in that a node answers, perhaps again.
func (d *changes) returned(n, was *Node) {
	if was.denied {
		d.admitted(n, was)
		return
	}
	silence := n.SeenAt.Sub(was.SeenAt)
	if was.SeenAt.IsZero() || was.Up && (was.failures == 0 || silence < stall) || d.round.blind {
		return
	}
	d.about(n, Entry{Kind: Up, Since: was.SeenAt,
		Numbers: map[string]int64{SilentMS: silence.Milliseconds(), SameProcess: flag(was.RunID == n.RunID)}})
}

// admitted takes in that a node, which lived, answers guard-monitor at last.
func (d *changes) admitted(n, was *Node) {
	since := was.SeenAt
	if since.IsZero() {
		since = d.Since
	}
	d.about(n, Entry{Kind: Watching, Since: since, Names: map[string]string{Reason: was.Error}})
}

func (d *changes) restarted(n, was *Node) {
	d.about(n, Entry{
		Kind: Restart, Since: was.SeenAt,
		Names:   map[string]string{Role: was.Role, NewRole: n.Role},
		Numbers: map[string]int64{WasMaster: flag(was.Role == master), KeysBefore: was.Keys, KeysAfter: n.Keys},
	})
}

// service takes in whether a node of a Redis Cluster serves its slots.
func (d *changes) service(n, was *Node) {
	if d.Mode != Clustered || n.Serves == was.Serves || was.RunID == "" && n.Serves {
		return
	}
	kind := ClusterDown
	if n.Serves {
		kind = ClusterOK
	}
	d.about(n, Entry{Kind: kind, Since: was.SeenAt})
}

// shut notes that a node forbids a query: it is not down, but nothing is known of
// it.
func (n *Node) shut(l *look) {
	if n.DownAt.IsZero() {
		n.DownAt = l.at.Add(-l.took)
	}
	n.Up, n.Error, n.answers, n.denied = false, l.err.Error(), 0, true
	n.failures++
}

// update takes in an answer.
func (n *Node) update(l *look) {
	n.Up, n.DownAt, n.Error, n.failures, n.denied = true, time.Time{}, "", 0, false
	n.answers++
	n.SeenAt, n.Took = l.at, l.took
	n.RunID = l.info["run_id"]
	n.Role, n.Master, n.LinkUp = master, "", false
	if l.info["role"] == "slave" {
		n.Role = replica
		n.Master = l.master()
		n.LinkUp = l.info["master_link_status"] == "up"
	}
	if n.Role == master {
		n.history, n.reached = l.info["master_replid"], l.number("master_repl_offset")
	}
	n.replID2, n.fork = l.info["master_replid2"], l.number("second_repl_offset")
	n.Keys, n.Evicted, n.Expired = l.keys(), l.number("evicted_keys"), l.number("expired_keys")
	n.calls = l.calls()
	n.clock = time.UnixMicro(l.number("server_time_usec"))
	n.Memory, n.MaxBytes, n.Policy = l.number("used_memory"), l.number("maxmemory"), l.info["maxmemory_policy"]
	n.Version = l.info["redis_version"]
	n.Serves = l.serves
	if me, ok := l.me(); ok {
		n.ID, n.Epoch, n.moving = me.id, me.epoch, me.moving
	}
}

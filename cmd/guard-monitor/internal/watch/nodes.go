package watch

import "fmt"

// node takes in what one node said.
func (d *changes) node(addr string, l *look) {
	n := d.nodes[addr]
	if n == nil {
		n = &Node{Addr: addr, Up: true}
		d.nodes[addr] = n
		d.meet(n)
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
	d.settings(n, &was)
	d.link(n, &was)
	d.service(n, &was)
}

// meet takes in a node that was not there in the last round.
func (d *changes) meet(n *Node) {
	if _, known := d.seen[n.Addr]; known {
		return
	}
	d.note(n)
	if !d.first {
		d.about(n, Entry{Kind: Joined, Text: n.Addr + " is a new node of " + d.Name})
	}
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
	text := fmt.Sprintf("%s, a %s, does not answer", n.Addr, n.kind())
	if l.refused {
		text = fmt.Sprintf("%s, a %s, refuses connections: no process listens there", n.Addr, n.kind())
	}
	d.about(n, Entry{Kind: Down, Since: n.SeenAt, Text: text, Numbers: map[string]int64{Refused: flag(l.refused)}})
}

func (n *Node) kind() string {
	if n.Role == "" {
		return "node not heard of before"
	}
	return n.Role
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
	same := was.RunID == n.RunID
	text := fmt.Sprintf("%s answers again after %s", n.Addr, seconds(silence))
	if same {
		text += "; its process lived all the time"
	}
	d.about(n, Entry{Kind: Up, Since: was.SeenAt, Text: text,
		Numbers: map[string]int64{SilentMS: silence.Milliseconds(), SameProcess: flag(same)}})
}

// admitted takes in that a node, which lived, answers guard-monitor at last.
func (d *changes) admitted(n, was *Node) {
	since := was.SeenAt
	if since.IsZero() {
		since = d.Since
	}
	d.about(n, Entry{Kind: Watching, Since: since, Text: fmt.Sprintf(
		"%s refused guard-monitor for %s (%s)", n.Addr, seconds(n.SeenAt.Sub(since)), was.Error)})
}

func (d *changes) restarted(n, was *Node) {
	d.about(n, Entry{
		Kind: Restart, Since: was.SeenAt,
		Text: fmt.Sprintf("%s was restarted: it was a %s with %s, the new process is a %s with %s",
			n.Addr, was.Role, quantity(was.Keys, "key"), n.Role, quantity(n.Keys, "key")),
		Numbers: map[string]int64{WasMaster: flag(was.Role == master), KeysBefore: was.Keys, KeysAfter: n.Keys},
	})
}

// settings that will hurt are told when they are first seen.
func (d *changes) settings(n, was *Node) {
	if risky := n.Policy != "" && n.Policy != "noeviction"; n.Policy != was.Policy && (risky || was.Policy != "") {
		text := fmt.Sprintf("%s has the memory policy %s, which may evict locks", n.Addr, n.Policy)
		if !risky {
			text = fmt.Sprintf("%s has the memory policy %s, which evicts no locks", n.Addr, n.Policy)
		}
		d.about(n, Entry{Kind: Policy, Since: was.SeenAt, Text: text, Numbers: map[string]int64{"maxmemory": n.MaxBytes}})
	}
	if n.Coverage != was.Coverage {
		text := n.Addr + " has cluster-require-full-coverage on: while one shard has no master, no lock of any shard can be taken"
		if !n.Coverage {
			text = n.Addr + " has cluster-require-full-coverage off: the other shards serve on when one has no master"
		}
		d.about(n, Entry{Kind: Coverage, Since: was.SeenAt, Text: text, Numbers: map[string]int64{"on": flag(n.Coverage)}})
	}
}

// link takes in whether a replica has its master.
func (d *changes) link(n, was *Node) {
	if n.Role != replica || was.Role != replica || n.LinkUp == was.LinkUp {
		return
	}
	e := Entry{Kind: LinkDown, Since: was.SeenAt, Peer: n.Master, Text: n.Addr + " has lost its master " + n.Master}
	if n.LinkUp {
		e.Kind, e.Text = LinkUp, n.Addr+" follows its master "+n.Master+" again"
	}
	d.about(n, e)
}

// service takes in whether a node of a Redis Cluster serves its slots.
func (d *changes) service(n, was *Node) {
	if d.Mode != Clustered || n.Serves == was.Serves || was.RunID == "" && n.Serves {
		return
	}
	e := Entry{Kind: ClusterDown, Since: was.SeenAt, Text: "the cluster is down as " + n.Addr + " sees it"}
	if n.Serves {
		e.Kind, e.Text = ClusterOK, "the cluster is up again as "+n.Addr+" sees it"
	}
	d.about(n, e)
}

package watch

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// maxNodes bounds the nodes of one target, and the lines of one view.
const maxNodes = 1000

// member is one line of CLUSTER NODES: a node, as another sees it, or itself.
type member struct {
	id     string
	addr   string // host:port
	named  string // the same with the name that it announces, empty if it announces none
	myself bool
	master bool
	doubt  bool   // "fail?": it did not answer the node with this view
	failed bool   // "fail": a majority had no answer
	of     string // the master's id, of a replica
	epoch  int64
	slots  []span
	moving int // slots that begin to move
}

// span is a range of slots, both ends included.
type span struct{ first, last int }

func (s span) has(slot int) bool { return s.first <= slot && slot <= s.last }

// parseSpan reads a slot, or a range of slots as in 0-5460.
func parseSpan(s string) (span, bool) {
	first, last, ok := strings.Cut(s, "-")
	if !ok {
		last = first
	}
	from, err := strconv.Atoi(first)
	to, err2 := strconv.Atoi(last)
	return span{from, to}, err == nil && err2 == nil && 0 <= from && from <= to && to < slotCount
}

// parseNodes reads CLUSTER NODES and leaves out what it cannot read, and nodes
// without an address.
func parseNodes(text string) []member {
	var view []member
	for line := range strings.Lines(text) {
		if m, ok := parseMember(strings.Fields(line)); ok && len(view) < maxNodes {
			view = append(view, m)
		}
	}
	return view
}

// parseMember reads: id address flags master ping pong epoch link slot...
func parseMember(f []string) (member, bool) {
	if len(f) < 8 {
		return member{}, false
	}
	m := member{id: f[0]}
	m.addr, m.named = parseAddr(f[1])
	for flag := range strings.SplitSeq(f[2], ",") {
		switch flag {
		case "myself":
			m.myself = true
		case "master":
			m.master = true
		case "fail?":
			m.doubt = true
		case "fail":
			m.failed = true
		case "handshake", "noaddr":
			return member{}, false
		}
	}
	if !m.myself && !usable(m.addr) {
		return member{}, false
	}
	if f[3] != "-" {
		m.of = f[3]
	}
	m.epoch, _ = strconv.ParseInt(f[6], 10, 64)
	for _, s := range f[8:] {
		if strings.HasPrefix(s, "[") {
			m.moving++
		} else if slots, ok := parseSpan(s); ok {
			m.slots = append(m.slots, slots)
		}
	}
	return m, true
}

// parseAddr reads ip:port@bus[,name], where an IP of version 6 has no brackets, and
// where name=value may follow.
func parseAddr(s string) (addr, named string) {
	s, rest, _ := strings.Cut(s, "@")
	_, rest, _ = strings.Cut(rest, ",")
	name, _, _ := strings.Cut(rest, ",")
	if strings.Contains(name, "=") {
		name = ""
	}
	colon := max(0, strings.LastIndexByte(s, ':'))
	port := strings.TrimPrefix(s[colon:], ":")
	return join(s[:colon], port), join(name, port)
}

const slotCount = 16384

// shardName lists the slots. A shard in many pieces is called by the first ones,
// which no other shard has.
func shardName(spans []span) string {
	const shown = 8
	spans = slices.Clone(spans)
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.first, b.first) })
	var b strings.Builder
	for i, s := range spans[:min(len(spans), shown)] {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(s.first))
		if s.last > s.first {
			b.WriteString("-" + strconv.Itoa(s.last))
		}
	}
	if len(spans) > shown {
		b.WriteString(",...")
	}
	return b.String()
}

// InShard reports whether the slot belongs to the shard of that name.
func InShard(shard string, slot int) bool {
	for r := range strings.SplitSeq(shard, ",") {
		if s, ok := parseSpan(r); ok && s.has(slot) {
			return true
		}
	}
	return false
}

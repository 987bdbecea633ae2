package sim

import (
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/belaygo/belay/internal/model"
)

// tracedKeys are those of two callers, each of whom updates the row of each key that it wants. The row is
// the table here.
var tracedKeys = []tracedKind{
	{"transfer", "accounts", model.Config{Keys: [2]uint8{3, 3}, Row: 1}},
	{"transfer", "accounts", model.Config{Keys: [2]uint8{3, 3}, Swapped: true, Row: 1}},
	{"transfer with a stamp", "purses", model.Config{Keys: [2]uint8{3, 3}, Swapped: true, Row: 1}},
	{"transfer", "accounts", model.Config{Keys: [2]uint8{3, 1}, Row: 1}},
	{"transfer", "accounts", model.Config{Keys: [2]uint8{3, 2}, Row: 1}},
}

// newTracedKeys is the plan of two callers with two keys, or of one and a caller with one of its keys.
func newTracedKeys(p plan, kind tracedKind, cfg *model.Config, r *rand.Rand) traced {
	first := spec{work: workloadOf(kind.name), key: "k", wait: time.Hour}
	if cfg.Refuse = r.IntN(3) == 0; cfg.Refuse {
		first.wait = 0
	}
	second := first
	switch {
	case cfg.Keys[1] < 3:
		second.work, second.key = workloadOf("take from an account"), []string{"k", "l"}[cfg.Keys[1]-1]
	case cfg.Swapped:
		second.key = "l"
	}
	cfg.Callers = [3]uint8{0, 1, 9}
	cfg.Name = p.dialect + " " + kind.name
	p.work = [][][]spec{{{first}}, {{second}}}
	return traced{p, cfg, []string{rowOf(kind.row, "k"), rowOf(kind.row, "l")}, []string{"k", "l"}}
}

// hasOfKeys reports whether the model has a choice where callers have several keys. It knows nothing of
// answers of the engine that are lost, of deadlines of locks, and of crashes of the database. A release
// that waits for long is given up.
func (n *narrow) hasOfKeys(c choice, calls []*call) bool {
	switch c.do {
	case crash, toggle, fill:
		return false
	case wait:
		releases := func(x *call) bool { return x.op != nil && x.asks != nil && verbOf(x) == "RELEASE" }
		return c.forTime == 0 || c.forTime <= ttl && !slices.ContainsFunc(calls, releases)
	case cut, cutAnswer, delay, refuse:
		x := calls[slices.IndexFunc(calls, func(x *call) bool { return x.label() == c.on })]
		if x.asks != nil || verbOf(x) == "INSPECT" {
			return expired(x) && c.do == cut
		}
	}
	return true
}

// place is that of a key among those of the model.
func (t *tracer) place(key string) int { return max(0, slices.Index(t.keys, key)) }

// keyOf is the place of the key whose lock an owner has.
func (t *tracer) keyOf(owner string) int {
	t.w.mu.Lock()
	defer t.w.mu.Unlock()
	if g := t.w.history.grants[owner]; g != nil {
		return t.place(g.key)
	}
	return 0
}

// seeOf takes in a step that is about a key.
func (t *tracer) seeOf(what model.Sight, who, key int) {
	t.take(model.Seen{What: what, Who: who, Key: key})
}

// idOf finds the primary key among the arguments of a statement.
var idOf = regexp.MustCompile("[`\"]?id[`\"]? = (\\?|\\$[0-9]+)")

// rowIn is the place of the key whose row a statement is about.
func (t *tracer) rowIn(sql string, args []any) int {
	found := idOf.FindStringSubmatchIndex(sql)
	if len(t.keys) < 2 || found == nil {
		return 0
	}
	n := strings.Count(sql[:found[2]], "?")
	if holder := sql[found[2]:found[3]]; holder != "?" {
		n, _ = strconv.Atoi(holder[1:])
		n--
	}
	id, _ := args[n].(int64)
	return max(0, int(id)-1)
}

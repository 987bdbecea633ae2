package sim

import (
	"fmt"
	"time"

	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/notify"
)

// A history is what the scheduler knows to have happened, past what the product says of
// it. Moments are steps of the scheduler.
type history struct {
	w       *world
	ops     []*op
	grants  map[string]*grant // by owner
	commits []*commit
	kills   []kill
	faults  map[string]int // how often each kind of fault was chosen
}

// A grant is a lock as the server had it.
type grant struct {
	owner    string
	key      string
	process  *process
	op       *op // that asked; hand-overs in memory are not seen
	asked    time.Time
	from     int // when it was granted, 0: never
	until    int // when it was gone, 0: it is there
	why      string
	regained int // by a failover to a replica that had it still
}

// A commit is what a transaction has changed in one row.
type commit struct {
	op      *op
	attempt *attempt
	step    int
	table   string
	row     string
	from    int64 // version, 0: the row was not there
	to      int64
}

// An attempt is one transaction of an operation.
type attempt struct {
	conn      string
	owner     string // of the grant that the process had
	held      bool   // the server had that grant
	begun     int
	wrote     int // first write that the server was sent
	last      string
	ended     int
	cut       bool // its COMMIT was not answered
	committed int
}

type kill struct {
	process *process
	step    int
}

func newHistory(w *world) *history {
	return &history{w: w, grants: make(map[string]*grant), faults: make(map[string]int)}
}

func (h *history) asked(o *op, owner string) {
	h.w.mu.Lock()
	defer h.w.mu.Unlock()
	h.grants[owner] = &grant{owner: owner, key: o.key, process: o.process, op: o, asked: time.Now()}
	o.owners = append(o.owners, owner)
}

func (h *history) granted(p *process, r lock.Request) {
	g := h.grants[r.Owner]
	if g == nil {
		g = &grant{owner: r.Owner, key: r.Key, process: p}
		h.grants[r.Owner] = g
	}
	g.from, g.until = h.w.step, 0
}

func (h *history) freed(_, owner, why string) {
	if g := h.grants[owner]; g != nil {
		g.until, g.why = h.w.step, why
	}
}

func (h *history) regained(_, owner string) {
	if g := h.grants[owner]; g != nil {
		g.until, g.regained = 0, h.w.step
	}
}

// lost reports whether the server lost the grant, or let it expire, before its owner
// released it.
func (g *grant) lost() bool { return g != nil && (g.why == "lost" || g.why == "expired") }

// published is an event that a Do has handed over.
type published struct {
	op    *op
	step  int
	event notify.Event
}

func (p published) String() string {
	return fmt.Sprintf("%s, %s, %s", p.event.Verdict, p.event.Outcome, p.event.Loss)
}

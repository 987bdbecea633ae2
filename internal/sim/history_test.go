package sim

import (
	"slices"
	"strings"
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
	events  []notify.Event
	monitor map[string]int      // events stored by it, by id
	stored  map[string]bool     // events that were in the outbox, and in no rows that were lost
	open    map[string]*attempt // by connection
	last    state
	shaken  int            // faults on the way to the locks
	faults  map[string]int // how often each kind of fault was chosen
}

// A grant is a lock as the server had it.
type grant struct {
	owner    string
	key      string
	process  *process
	asked    time.Time
	took     time.Duration // from then to the grant
	from     int           // when it was granted, 0: never
	until    int           // when it was gone, 0: it is there
	known    bool          // the Locker got the answer
	why      string
	regained int // by a failover to a replica that had it still
}

// A commit is what a transaction has changed in one row.
type commit struct {
	op      *op
	attempt *attempt
	step    int
	row     string
	from    int64 // version, 0: the row was not there
	to      int64
	lost    bool // the database has lost it
}

// An attempt is one transaction of an operation.
type attempt struct {
	op       *op
	conn     string
	grant    *grant // that the process had
	begun    int
	served   bool // the server has begun it
	snapshot int  // what the attempt reads is no older; on PostgreSQL its last read before its first write
	at       time.Time
	wrote    int // first write that the server was sent
	last     string
	ended    int
	cut      bool // its COMMIT was not answered
}

func newHistory(w *world) *history {
	return &history{w: w, grants: make(map[string]*grant), faults: make(map[string]int), monitor: make(map[string]int), stored: make(map[string]bool), open: make(map[string]*attempt)}
}

func (h *history) asked(o *op, owner string) {
	h.w.mu.Lock()
	defer h.w.mu.Unlock()
	h.grants[owner] = &grant{owner: owner, key: o.key, process: o.process, asked: time.Now()}
	o.owners = append(o.owners, owner)
}

func (h *history) granted(p *process, r lock.Request) {
	g := h.grants[r.Owner]
	if g == nil {
		g = &grant{owner: r.Owner, key: r.Key, process: p}
		h.grants[r.Owner] = g
	}
	g.from, g.until, g.took = h.w.step, 0, time.Since(g.asked)
}

// answered takes in that a Locker knows of its grant.
func (h *history) answered(owner string) {
	h.w.mu.Lock()
	defer h.w.mu.Unlock()
	if g := h.grants[owner]; g != nil {
		g.known = true
	}
}

func (h *history) freed(owner, why string) {
	if g := h.grants[owner]; g != nil {
		g.until, g.why = h.w.step, why
	}
}

func (h *history) regained(owner string) {
	if g := h.grants[owner]; g != nil {
		g.until, g.regained = 0, h.w.step
	}
}

// lost reports whether the server lost the grant, or let it expire, before its owner
// released it.
func (g *grant) lost() bool { return g.until > 0 && (g.why == "lost" || g.why == "expired") }

// report takes in an event that was handed over, by o or by a part of its process.
func (h *history) report(o *op, ev notify.Event) {
	h.w.mu.Lock()
	defer h.w.mu.Unlock()
	h.events = append(h.events, ev)
	if o != nil {
		o.events = append(o.events, ev)
	}
}

// transaction returns the one that runs on a connection.
func (h *history) transaction(conn string) *attempt {
	h.w.mu.Lock()
	defer h.w.mu.Unlock()
	return h.open[conn]
}

// statement takes in what becomes of a call of the database.
func (h *history) statement(c *call, do action) {
	word, _, _ := strings.Cut(c.sql, " ")
	a := h.open[c.conn]
	if a != nil && a.op != c.op && c.op != nil {
		h.w.problem("I12: %s uses a connection in the transaction of %s: %s", c.op, a.op, c.text)
	}
	if c.op == nil {
		return
	}
	if do != run {
		c.op.breaks++
	}
	if a != nil && !a.served {
		a.served = true
		if h.w.plan.knobs.Pooler > 0 { // which may have let the begin wait for a session
			a.snapshot = h.w.step
		}
	}
	switch {
	case strings.HasPrefix(c.sql, "START TRANSACTION"), c.sql == "BEGIN" && h.w.plan.dialect == "postgres":
		a = &attempt{op: c.op, conn: c.conn, begun: h.w.step, snapshot: h.w.step, at: time.Now(), grant: h.grantOf(c.op)}
		h.w.mu.Lock()
		h.open[c.conn] = a
		h.w.mu.Unlock()
		c.op.attempts = append(c.op.attempts, a)
	case a == nil:
		return
	case word == "SELECT" && a.wrote == 0 && h.w.plan.dialect == "postgres":
		a.snapshot = h.w.step
	case word == "INSERT", word == "UPDATE", word == "DELETE":
		if a.wrote == 0 && do != cut {
			a.wrote = h.w.step
		}
		if do == run {
			c.op.breaks = 0
		}
		a.last = c.sql
	case word == "COMMIT":
		a.cut = do != run
		h.end(a)
	case word == "ROLLBACK" && !strings.Contains(c.sql, " TO "):
		h.end(a)
	}
	if do != run && do != delay {
		h.end(a)
	}
}

func (h *history) end(a *attempt) {
	if a.ended == 0 {
		a.ended = h.w.step
	}
	h.w.mu.Lock()
	defer h.w.mu.Unlock()
	delete(h.open, a.conn)
}

// rival reports whether another operation has a transaction on the key of o.
func (h *history) rival(o *op) bool {
	for _, a := range h.open {
		if o != nil && a.op != o && a.op.key == o.key {
			return true
		}
	}
	return false
}

// broken ends what ran on the connection of a call, or, if that is nil, on all of them.
func (h *history) broken(c *call) {
	for _, o := range h.ops {
		if o.began > 0 && o.ended == 0 && (c == nil || c.op == o) {
			o.breaks++
		}
	}
	for _, a := range h.open {
		if c == nil || a.conn == c.conn {
			h.end(a)
		}
	}
}

// keep notes the events that are in the outbox.
func (h *history) keep() {
	for _, r := range h.w.db.Rows("belay_outbox") {
		h.stored[r["event_id"].(string)] = true
	}
}

// forgotten takes in that the database may have lost its last commits.
func (h *history) forgotten() {
	now := h.w.rows()
	for _, k := range h.commits {
		if now[k.row] < k.to {
			k.lost = true
		}
	}
	h.last = now
	if h.w.plan.outbox {
		clear(h.stored)
		h.keep()
	}
}

// outages returns how many outages a process has reported to begin, and to end.
func (h *history) outages(process string) (begun, ended int) {
	for _, ev := range h.events {
		switch {
		case ev.Verdict != notify.VerdictDegraded || ev.Instance != process:
		case ev.Outcome == notify.OutcomeUnknown:
			begun++
		default:
			ended++
		}
	}
	return begun, ended
}

// inOutage reports whether a process that lives has an outage that has not ended.
func (h *history) inOutage() bool {
	h.w.mu.Lock()
	defer h.w.mu.Unlock()
	return slices.ContainsFunc(h.w.processes, func(p *process) bool {
		begun, ended := h.outages(p.name)
		return p.killed == 0 && begun > ended
	})
}

// ordered returns the grants in the order in which they were asked for.
func (h *history) ordered() (all []*grant) {
	for _, o := range h.ops {
		for _, owner := range o.owners {
			all = append(all, h.grants[owner])
		}
	}
	return all
}

// grantOf returns the newest grant that the process of o has on its key; nil if o takes no
// lock.
func (h *history) grantOf(o *op) (newest *grant) {
	if o.work.bare {
		return nil
	}
	for _, g := range h.grants {
		if g.process == o.process && g.key == o.key && g.known && (newest == nil || g.from > newest.from) {
			newest = g
		}
	}
	return newest
}

// changed compares the rows with what they were before a call.
func (h *history) changed(c *call) {
	now := h.w.rows()
	for row, to := range now {
		from := h.last[row]
		if from == to {
			continue
		}
		k := &commit{op: c.op, step: h.w.step, row: row, from: from, to: to}
		for _, a := range c.op.attempts {
			if a.conn == c.conn {
				k.attempt = a
			}
		}
		h.commits = append(h.commits, k)
		c.op.commits = append(c.op.commits, k)
	}
	h.last = now
}

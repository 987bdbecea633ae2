package sim

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/belaygo/belay/lock/lockengine"
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
	lives   []*life        // of requests, in order
	shaken  int            // faults on the way to the locks
	cutOff  int            // those of them that are no caller's own deadline
	silent  time.Duration  // how long a request to the locks has stood that its caller gave up
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
	freed    time.Time // when it was gone
	regained int       // by a failover to a replica that had it still
	doubted  bool      // a renewal was not answered
	astray   time.Time // when its last release was given up, if that was not answered
}

// A commit is what a transaction has changed in one row.
type commit struct {
	op      *op
	attempt *attempt
	step    int
	row     string
	from    int64 // version, 0: the row was not there
	to      int64 // one more: a crew's UPDATE makes a commit of each member
	lost    bool  // the database has lost it
	purged  bool  // it is a claim that was deleted
}

// An attempt is one transaction of an operation, or of a crew.
type attempt struct {
	op       *op   // that ran it
	crew     []*op // the others, as far as they have sent a change
	conn     string
	grants   map[string]*grant // that the process had, by key
	begun    int
	served   bool // the server has begun it
	snapshot int  // what the attempt reads is no older; on PostgreSQL its last read before its first write
	at       time.Time
	wrote    int // first write that the server was sent
	last     string
	ended    int
	endedAt  time.Time
	sent     bool // its COMMIT was
	cut      bool // and not answered
}

func newHistory(w *world) *history {
	return &history{w: w, grants: make(map[string]*grant), faults: make(map[string]int), monitor: make(map[string]int), stored: make(map[string]bool), open: make(map[string]*attempt)}
}

func (h *history) asked(o *op, r lockengine.Request) {
	h.w.mu.Lock()
	defer h.w.mu.Unlock()
	rank := func(key string) string { return strings.TrimPrefix(key, o.lock()) } // its request's comes first
	for _, owner := range o.owners {
		if g := h.grants[owner]; rank(g.key) > rank(r.Key) && g.from > 0 && g.until == 0 && g.regained == 0 && o.cut == nil && !h.w.gate.isDead(o.process) && !h.handedOn(o, g.key) {
			h.w.problem("S1: %s asks for %q, and has %q", o, r.Key, g.key)
		}
	}
	h.grants[r.Owner] = &grant{owner: r.Owner, key: r.Key, process: o.process, asked: time.Now()}
	o.owners = append(o.owners, r.Owner)
}

// handedOn reports whether o may have handed the lock on key to another caller of its process, in memory.
func (h *history) handedOn(o *op, key string) bool {
	return slices.ContainsFunc(h.ops, func(other *op) bool {
		return other != o && other.process == o.process && other.began > 0 && other.ended == 0 && other.has(key)
	})
}

func (h *history) granted(p *process, r lockengine.Request) {
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

// unrenewed takes in that a renewal was not answered, or not made.
func (h *history) unrenewed(owner string) {
	h.w.mu.Lock()
	defer h.w.mu.Unlock()
	if g := h.grants[owner]; g != nil {
		g.doubted = true
	}
}

// astray takes in whether a release was answered.
func (h *history) astray(owner string, unanswered bool) {
	h.w.mu.Lock()
	defer h.w.mu.Unlock()
	if g := h.grants[owner]; g != nil {
		g.astray = time.Time{}
		if unanswered {
			g.astray = time.Now()
		}
	}
}

func (h *history) freed(owner, why string) {
	if g := h.grants[owner]; g != nil {
		g.until, g.why, g.freed = h.w.step, why, time.Now()
	}
	h.w.gate.trace.freed(owner, why)
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
		a = &attempt{op: c.op, conn: c.conn, begun: h.w.step, snapshot: h.w.step, at: time.Now(), grants: h.grantsOf(c.op)}
		h.w.mu.Lock()
		h.open[c.conn] = a
		h.w.mu.Unlock()
		c.op.attempts = append(c.op.attempts, a)
	case a == nil:
		return
	case strings.Contains(c.sql, "LEFT JOIN belay_answer"), strings.Contains(c.sql, "since_ms, lease_ms"): // it asks for an answer, or what is pending, and is no attempt
		c.op.attempts = slices.DeleteFunc(c.op.attempts, func(b *attempt) bool { return a == b })
	case word == "SELECT" && a.wrote == 0 && h.w.plan.dialect == "postgres":
		a.snapshot = h.w.step
	case word == "INSERT", word == "UPDATE", word == "DELETE", strings.HasPrefix(c.sql, "SET STATEMENT"):
		if a.wrote == 0 && do != cut {
			a.wrote = h.w.step
		}
		if do == run {
			c.op.breaks = 0
		}
		a.last = c.sql
	case word == "COMMIT":
		a.cut, a.sent = do != run, true
		h.end(a)
	case word == "ROLLBACK" && !strings.Contains(c.sql, " TO "):
		h.end(a)
	}
	h.share(a, c.db.Args, a.last == c.sql)
	if do != run && do != delay {
		h.end(a)
	}
}

func (h *history) end(a *attempt) {
	if a.ended == 0 {
		a.ended, a.endedAt = h.w.step, time.Now()
	}
	h.w.mu.Lock()
	defer h.w.mu.Unlock()
	delete(h.open, a.conn)
}

// rival reports whether another operation has a transaction on the key of o.
func (h *history) rival(o *op) bool {
	for _, a := range h.open {
		if o != nil && a.op != o && (slices.ContainsFunc(o.keys(), a.op.has) || o.id != "" && a.op.id == o.id) {
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
		if now[k.row].version < k.to && !k.op.claims(k.row) {
			k.lost = true
		}
	}
	h.live(nil)
	h.w.checkOpen()
	h.w.checkMessages()
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

// grantsOf returns the newest grants that the process of o has on its keys; nil if o takes
// no lock.
func (h *history) grantsOf(o *op) map[string]*grant {
	if o.work.bare {
		return nil
	}
	newest := make(map[string]*grant)
	for _, g := range h.grants {
		if g.process == o.process && o.has(g.key) && g.known && (newest[g.key] == nil || g.from > newest[g.key].from) {
			newest[g.key] = g
		}
	}
	return newest
}

// share notes whose rows a transaction has read, and whose changes it has sent, beside those
// of the one that runs it.
func (h *history) share(a *attempt, args []any, wrote bool) {
	for _, o := range h.ops {
		if !o.work.combines || o == a.op || o.process != a.op.process || o.began == 0 || o.ended > 0 {
			continue
		}
		sent := slices.ContainsFunc(args, o.sent)
		if sent || slices.Contains(args, any(o.key)) {
			o.leaders = append(o.leaders, a.op)
		}
		if sent && wrote && !slices.Contains(a.crew, o) {
			a.crew = append(a.crew, o)
			o.attempts = append(o.attempts, a)
		}
	}
}

// changed compares the rows with what they were before a call.
func (h *history) changed(c *call) {
	now := h.w.rows()
	for _, row := range slices.Sorted(maps.Keys(now)) {
		from, to := h.last[row], now[row]
		if from == to {
			continue
		}
		who, ok := h.authors(c, row, from, to)
		if !ok || from.version > 0 && from.version+int64(len(who)) != to.version {
			h.w.problem("I2: %s has changed %s from %v to %v", c.op, row, from, to)
		}
		for i, o := range who {
			k := &commit{op: o, step: h.w.step, row: row, from: from.version, to: to.version}
			if from.version > 0 {
				k.from, k.to = from.version+int64(i), from.version+int64(i)+1
			}
			k.attempt = c.op.attemptOn(c.conn)
			h.commits = append(h.commits, k)
			o.commits = append(o.commits, k)
		}
	}
	h.last = now
}

// authors returns whose changes led from one state of a row to another, in their order.
func (h *history) authors(c *call, row string, from, to rowState) (who []*op, ok bool) {
	if news, more := strings.CutPrefix(to.names, from.names); to.names != "" {
		for name := range strings.FieldsSeq(news) {
			if i := slices.IndexFunc(h.ops, func(o *op) bool { return o.name == name }); i >= 0 {
				who = append(who, h.ops[i])
			}
		}
		return who, more
	}
	if a := c.op.attemptOn(c.conn); a != nil && !c.op.writes(row) {
		if i := slices.IndexFunc(a.crew, func(o *op) bool { return o.writes(row) }); i >= 0 {
			return a.crew[i : i+1], true
		}
	}
	return []*op{c.op}, true
}

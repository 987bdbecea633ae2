package guard

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/internal/background"
	"github.com/belaygo/belay/internal/claim"
	"github.com/belaygo/belay/internal/dbtx"
	"github.com/belaygo/belay/internal/wait"
	"github.com/belaygo/belay/notify"
)

const (
	// canarySize bounds the claims that a canary keeps: about 100 kB.
	canarySize = 1000
	// canarySpan is the time before the last commit whose claims are looked for.
	canarySpan = time.Minute
	// canaryPause is the time between two looks. A new primary may apply within it what it has
	// received.
	canaryPause = 10 * time.Second
	// canaryTries is how often a look that fails is repeated.
	canaryTries = 30
	// leastKeep is how old a claim is at least when a purger deletes it, less a margin for clocks.
	leastKeep = 55 * time.Second
)

// A canary keeps the last claims that the Guard has committed. When the database server has changed
// or has restarted, it looks for them in the background. It reports those that are missing in two
// looks: the database has lost their commits.
type canary struct {
	db       *gorm.DB
	reporter *reporter
	running  *running
	halt     context.Context // ends at Close
	pause    time.Duration

	kept    atomic.Bool // there is a claim
	mu      sync.Mutex
	claims  []kept         // a ring: the claim n is at n modulo canarySize
	next    uint64         // the number of the next claim
	server  dbtx.Server    // of the last transaction
	servers []*dbtx.Server // the last servers that claims were committed on
	due     bool           // the server may have changed since the last look
	pending []kept         // to be looked for: those of the time before it changed
	looking bool
	looked  time.Time // when the last look began

	sought []kept // what the look is for; of its goroutine alone
}

// A kept claim was committed.
type kept struct {
	number    uint64
	request   [sha256.Size]byte
	attempt   int64
	begun, at int64 // when its transaction began, and when it was committed, in nanoseconds since 1970
	server    *dbtx.Server
	lost      bool // that is reported
}

// mostServers bounds the servers that a canary has in common for many claims.
const mostServers = 8

func newCanary(halt context.Context, db *gorm.DB, r *reporter, running *running) *canary {
	return &canary{db: db, reporter: r, running: running, halt: halt, pause: canaryPause}
}

// see notes the server of a transaction, which has begun.
func (c *canary) see(s dbtx.Server) {
	if c == nil || !c.kept.Load() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.note(s)
}

// keep keeps a claim that t has committed.
func (c *canary) keep(t *dbtx.Tx, made *claim.Claim) {
	s := t.Server()
	if c == nil || made == nil || s.Name == "" {
		return
	}
	k := kept{attempt: int64(made.Attempt), begun: t.Begun().UnixNano(), at: time.Now().UnixNano()}
	copy(k.request[:], made.Request)
	c.add(k, s)
}

// add keeps a claim that was committed on a server. It forgets the oldest one if there are too many.
func (c *canary) add(k kept, s dbtx.Server) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.next == 0 {
		c.server = s
	}
	c.note(s)
	k.number, k.server = c.next, c.shared(s)
	c.next++
	if len(c.claims) < canarySize {
		c.claims = append(c.claims, k)
	} else {
		c.claims[k.number%canarySize] = k
	}
	c.kept.Store(true)
}

// note starts a look if the server differs from the last one, or may have been restarted since. The
// caller holds c.mu.
func (c *canary) note(s dbtx.Server) {
	if s.Name == "" || s.Is(c.server) && !s.After(c.server) {
		return
	}
	c.server, c.due = s, true
	if len(c.pending) == 0 { // those of the next server may soon displace them
		c.pending = c.recent()
	}
	if c.looking {
		return
	}
	c.looking = true
	c.running.add()
	go c.run()
}

// shared returns a server for many claims. The caller holds c.mu.
func (c *canary) shared(s dbtx.Server) *dbtx.Server {
	for _, known := range c.servers {
		if known.Is(s) {
			return known
		}
	}
	if len(c.servers) == mostServers {
		c.servers = c.servers[1:]
	}
	added := s // only a new server is allocated
	c.servers = append(c.servers, &added)
	return &added
}

// run looks while a look is due.
func (c *canary) run() {
	defer c.running.leave()
	for failed := 0; c.begin(failed); {
		if wait.Sleep(c.halt, c.rest(), nil) != nil {
			return
		}
		err := background.Do(c.reporter.cfg.Logger, "look for lost commits", c.look)
		if err == nil {
			failed, c.sought = 0, nil
			continue
		}
		if failed++; failed == 1 || failed == canaryTries {
			c.reporter.cfg.Logger.Warn("whether the database has lost commits is not known", "error", err, "again", failed < canaryTries)
		}
	}
}

// begin reports whether a look is due, after so many in a row that failed.
func (c *canary) begin(failed int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.looking = failed > 0 && failed < canaryTries || c.due
	if c.due {
		c.sought = union(c.sought, c.pending, c.recent())
	}
	c.due, c.pending = false, nil
	return c.looking && c.halt.Err() == nil
}

// rest returns the time until the next look may begin.
func (c *canary) rest() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pause - time.Since(c.looked)
}

// look looks for the claims that another server has committed, or the same one before it was
// restarted. It reports those that are missing in two looks.
func (c *canary) look() error {
	c.gather()
	missing, _, err := c.find(c.sought)
	if err != nil || len(missing) == 0 {
		return err
	}
	if err := wait.Sleep(c.halt, c.pause, nil); err != nil {
		return nil //nolint:nilerr // the Guard is closed
	}
	missing, now, err := c.find(missing)
	if err != nil || len(missing) == 0 {
		return err
	}
	c.strike(missing)
	c.report(missing, now)
	return nil
}

// gather adds what was committed while the look was due: the server may have lost that, too.
func (c *canary) gather() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.looked = time.Now()
	c.sought = union(c.sought, c.recent())
}

// union returns claims without those that are there twice.
func union(lists ...[]kept) (all []kept) {
	seen := make(map[uint64]bool)
	for _, k := range slices.Concat(lists...) {
		if !seen[k.number] {
			seen[k.number] = true
			all = append(all, k)
		}
	}
	return all
}

// recent returns the claims of the last minute before the last commit. The caller holds c.mu.
func (c *canary) recent() []kept {
	if c.next == 0 {
		return nil
	}
	var recent []kept
	last := c.claims[(c.next-1)%canarySize].at
	for _, k := range c.claims {
		if !k.lost && last-k.at <= int64(canarySpan) {
			recent = append(recent, k)
		}
	}
	return recent
}

// find returns the claims that the server lacks, of those that it should have from the time before.
// It notes that it has the others.
func (c *canary) find(claims []kept) (missing []kept, now dbtx.Server, err error) {
	ctx, cancel := context.WithTimeout(c.halt, 2*c.reporter.cfg.EndTimeout)
	defer cancel()
	err = dbtx.Visit(ctx, c.db, func(v *dbtx.Visitor) error {
		now = v.Server()
		claims, err := before(ctx, v, claims)
		if err != nil || len(claims) == 0 {
			return err
		}
		var there []kept
		err = v.Read(ctx, func(conn *sql.Conn) (err error) {
			there, missing, err = split(ctx, conn, c.db.Name(), claims)
			return err
		})
		if err == nil {
			c.move(there, now)
		}
		return err
	})
	if c.halt.Err() != nil {
		return nil, now, nil
	}
	return missing, now, err
}

// before returns the claims that were committed on another server than the visited one, or before
// that was restarted.
func before(ctx context.Context, v *dbtx.Visitor, claims []kept) (from []kept, err error) {
	follows := make(map[*dbtx.Server]bool)
	for _, k := range claims {
		is, known := follows[k.server]
		if !known {
			if is, err = v.Follows(ctx, *k.server); err != nil {
				return nil, err
			}
			follows[k.server] = is
		}
		if is {
			from = append(from, k)
		}
	}
	return from, nil
}

// split splits claims into those that the table has, or may have had until they were purged, and
// those that it has lost.
func split(ctx context.Context, conn *sql.Conn, database string, claims []kept) (there, missing []kept, err error) {
	requests := make([][]byte, len(claims))
	for i := range claims {
		requests[i] = claims[i].request[:]
	}
	attempts, err := claim.Attempts(ctx, conn, database, requests)
	if err != nil {
		return nil, nil, err
	}
	oldest, err := claim.Oldest(ctx, conn, database)
	if err != nil {
		return nil, nil, err
	}
	for _, k := range claims {
		attempt, found := attempts[string(k.request[:])]
		age := time.Since(time.Unix(0, k.begun))
		purged := age > leastKeep && age > oldest // the oldest ones go first, and a request may be served anew
		if found && attempt == k.attempt || purged {
			there = append(there, k)
		} else {
			missing = append(missing, k)
		}
	}
	return there, missing, nil
}

// move notes that nothing is left to find out about claims until the server changes again.
func (c *canary) move(claims []kept, now dbtx.Server) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range claims {
		if at := &c.claims[k.number%canarySize]; at.number == k.number {
			at.server = &now
		}
	}
	for i, known := range c.servers {
		if known.Is(now) {
			c.servers[i] = &now // read after the restart, if there was one
		}
	}
}

// strike notes that claims are lost, so that they are reported once.
func (c *canary) strike(claims []kept) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range claims {
		if at := &c.claims[k.number%canarySize]; at.number == k.number {
			at.lost = true
		}
		c.pending = slices.DeleteFunc(c.pending, func(p kept) bool { return p.number == k.number })
	}
}

// report publishes one event about claims that are lost.
func (c *canary) report(missing []kept, now dbtx.Server) {
	first, last := missing[0], missing[0]
	for _, k := range missing {
		if k.at < first.at {
			first = k
		}
		if k.at >= last.at {
			last = k
		}
	}
	ev := c.reporter.event(c.halt, notify.VerdictCommitLost, notify.OutcomeUnknown, "")
	ev.Count = len(missing)
	ev.Lost = &notify.LostCommits{
		FirstAt: time.Unix(0, first.at), LastAt: time.Unix(0, last.at),
		Server: last.server.Name, Now: now.Name,
	}
	c.reporter.cfg.Logger.Error("the database has lost commits that it had acknowledged", "commits", ev.Count,
		"first", ev.Lost.FirstAt, "last", ev.Lost.LastAt, "server", ev.Lost.Server, "now", ev.Lost.Now)
	c.reporter.publishLater(c.halt, ev)
}

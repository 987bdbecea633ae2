package chaos_test

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/belaygo/belay/notify"
)

// A call is one call of guard.Do, as its worker saw it. Times are 0 where it did
// not come that far.
type call struct {
	name, worker, key string

	begun, wrote, ended, returned int64
	lost                          bool // its COMMIT got no answer
	result                        string
	events                        []*notify.Event
	caught                        int64 // when the first event was published
	died                          int64 // when its worker was killed
	inspected                     bool  // it asked who has the lock, and was answered
	holder                        string
	grant                         *grant
}

// A grant is a lock that the engine gave to a worker, until it released it. Calls
// of one worker may have had it one after the other.
type grant struct {
	worker, key, owner, node string
	asked, granted, release  int64
	renewed                  int64  // for the last time
	released                 string // the answer
	calls                    []*call
}

// A history is what all workers saw.
type history struct {
	calls   []*call
	grants  []*grant
	faults  []fault
	refused map[string]int // by worker: operations, as its events say that no lock could be acquired for them
}

// A fault is what was done to a lock, a node or a worker, and when.
type fault struct {
	Kind    faultKind `json:"kind"`
	Subject string    `json:"subject"` // a key, the address of a node, or the name of a worker
	From    int64     `json:"from"`
	To      int64     `json:"to"`
}

type faultKind string

const (
	wipe     faultKind = "lock wiped"
	failover faultKind = "master killed"
	pause    faultKind = "worker paused"
	kill     faultKind = "worker killed"
	cut      faultKind = "connection cut"
)

// read puts the lines of the workers together.
func read(lines map[string][]line, faults []fault) *history {
	h := &history{faults: faults, refused: make(map[string]int)}
	for worker, ls := range lines {
		calls, grants := make(map[string]*call), make(map[string]*grant)
		for _, l := range ls {
			c := calls[l.Do]
			switch l.At {
			case called:
				c = &call{name: l.Do, worker: worker, key: l.Key}
				calls[l.Do] = c
				h.calls = append(h.calls, c)
			case begun:
				c.begun = l.T
			case wrote:
				c.wrote = cmp.Or(c.wrote, l.T)
			case lostCommit:
				c.lost = true
			case ended:
				if l.Result != unanswered { // else the server may still execute it
					c.ended = l.T
				}
			case returned:
				c.returned, c.result = l.T, l.Result
			case event:
				if l.Event.Verdict == notify.VerdictUnavailable {
					h.refused[worker] += l.Event.Count
				}
				if c != nil { // the end of an outage belongs to no call
					c.events = append(c.events, l.Event)
					c.caught = cmp.Or(c.caught, l.T)
				}
			case inspected:
				if c != nil { // the question whether an outage is over belongs to no call
					c.inspected, c.holder = l.Result != unanswered, l.Owner
				}
			case asked:
				grants[l.Owner] = &grant{worker: worker, key: l.Key, owner: l.Owner, asked: l.T}
			case granted:
				g := grants[l.Owner]
				g.granted, g.node = l.T, l.Node
				h.grants = append(h.grants, g)
			case renewed:
				grants[l.Owner].renewed = l.T
			case release:
				grants[l.Owner].release = cmp.Or(grants[l.Owner].release, l.T)
			case released:
				grants[l.Owner].released = cmp.Or(grants[l.Owner].released, l.Result)
			}
		}
	}
	for _, c := range h.calls {
		c.died = h.death(c.worker)
	}
	h.assign()
	return h
}

func (h *history) death(worker string) int64 {
	for _, f := range h.faults {
		if f.Kind == kill && f.Subject == worker {
			return f.To
		}
	}
	return 0
}

// assign finds the grant of each call whose operation began: the last one that
// its worker had got for the key.
func (h *history) assign() {
	type place struct{ worker, key string }
	at := make(map[place][]*grant)
	slices.SortFunc(h.grants, func(a, b *grant) int { return cmp.Compare(a.granted, b.granted) })
	slices.SortFunc(h.calls, func(a, b *call) int { return cmp.Compare(a.begun, b.begun) })
	for _, g := range h.grants {
		p := place{g.worker, g.key}
		at[p] = append(at[p], g)
	}
	for _, c := range h.calls {
		for _, g := range slices.Backward(at[place{c.worker, c.key}]) {
			if c.begun > 0 && g.granted <= c.begun {
				if (g.release == 0 || g.release >= c.begun) && c.begun < g.expiry() && !g.abandoned(c.begun) { // else it runs without a lock
					c.grant = g
					g.calls = append(g.calls, c)
				}
				break
			}
		}
	}
	for _, c := range h.calls { // it was handed a lock that it found lost, before its operation began or in a pause
		if c.grant != nil || len(c.alarms()) == 0 {
			continue
		}
		if i := slices.IndexFunc(h.grants, func(g *grant) bool { return g.owner == c.alarms()[0].Owner }); i >= 0 {
			c.grant = h.grants[i]
			c.grant.calls = append(c.grant.calls, c)
		}
	}
}

// abandoned reports whether a call had ended with an unknown outcome by then: nobody is
// handed its lock, and once its lease would have ended others may go on without one.
func (g *grant) abandoned(by int64) bool {
	return slices.ContainsFunc(g.calls, func(c *call) bool { return c.result == unknown && c.returned < by })
}

// expiry is when a grant has ended at the latest. One that was abandoned, after a
// commit of unknown outcome, is never released.
func (g *grant) expiry() int64 { return max(g.granted, g.renewed) + int64(ttl) }

// hold returns from when to when a call had the lock, as far as that can be seen
// from outside. It begins with the grant, or with the operation if the lock was
// handed over in memory. It ends with the release, or with the transaction if the
// lock was handed over again. A transaction without an answer to its COMMIT or
// ROLLBACK ends when Do returns.
func (c *call) hold() (from, to int64) {
	from, to = c.begun, cmp.Or(c.ended, c.returned)
	if c.grant.calls[0] == c {
		from = c.grant.granted
	}
	if last := c.grant.calls[len(c.grant.calls)-1]; last == c && c.grant.release > 0 {
		to = c.grant.release
	}
	return from, cmp.Or(to, c.died, math.MaxInt64)
}

// over returns when nothing of the call can take effect any more. A server goes on
// with a COMMIT whose worker was killed or whose connection was cut. Do ends the
// session before it returns, but only if it had the lock.
func (c *call) over() int64 {
	switch end := cmp.Or(c.ended, c.returned, c.died); {
	case end == 0:
		return math.MaxInt64
	case c.ended > 0, c.grant != nil && c.returned > 0:
		return end
	default:
		return end + int64(lateCommit)
	}
}

// lateCommit is how long a server may go on with a COMMIT whose client is gone. It is
// far less than what is left of the lock of a worker that is killed: a lock that
// expired by itself excuses no alarm.
const lateCommit = 2 * time.Second

// An overlap is two calls that had the lock on one key at a time, both of which
// reached their write or found what the other wrote.
type overlap struct{ first, second *call }

func (h *history) overlaps() (found []overlap) {
	byKey := make(map[string][]*call)
	for _, c := range h.calls {
		if c.grant != nil && (c.wrote > 0 || c.foundAnother()) {
			byKey[c.key] = append(byKey[c.key], c)
		}
	}
	for _, calls := range byKey {
		slices.SortFunc(calls, func(a, b *call) int {
			from, _ := a.hold()
			other, _ := b.hold()
			return cmp.Compare(from, other)
		})
		for i, a := range calls {
			_, end := a.hold()
			for _, b := range calls[i+1:] {
				if from, _ := b.hold(); from < end && a.grant != b.grant && (a.wrote > 0 || b.wrote > 0) {
					found = append(found, overlap{a, b})
				}
			}
		}
	}
	return found
}

// reported reports whether one of the two was told about, by whoever had its
// grant then.
func (o overlap) reported() bool {
	for _, c := range slices.Concat(o.first.grant.calls, o.second.grant.calls) {
		if len(c.alarms()) > 0 {
			return true
		}
	}
	return false
}

// alarms are the events which say that the call's lock failed.
func (c *call) alarms() (events []*notify.Event) {
	for _, e := range c.events {
		if e.Verdict == notify.VerdictOverlap || e.Verdict == notify.VerdictLost {
			events = append(events, e)
		}
	}
	return events
}

// foundAnother reports whether the call's write was refused because of another
// one's. On PostgreSQL a read can find that, before the call has written.
func (c *call) foundAnother() bool { return c.count(notify.VerdictOverlap) > 0 }

func (c *call) count(v notify.Verdict) (n int) {
	for _, e := range c.events {
		if e.Verdict == v {
			n++
		}
	}
	return n
}

// tellsUnknown reports whether an event is about a commit of unknown outcome.
func tellsUnknown(e *notify.Event) bool {
	return e.Outcome == notify.OutcomeUnknown && e.Verdict != notify.VerdictDegraded
}

// without returns the calls that reached their write without a lock.
func (h *history) without() (calls []*call) {
	for _, c := range h.calls {
		if c.grant == nil && c.wrote > 0 {
			calls = append(calls, c)
		}
	}
	return calls
}

// blindSpot says why nobody could report the overlap, or returns "". The calls of
// the earlier grant find out together that it was lost, from this one on.
func (o overlap) blindSpot() string {
	early, late := o.first, o.second
	if late.grant.granted < early.grant.granted {
		early, late = late, early
	}
	for _, c := range append(early.grant.from(early), late) {
		if reason := c.mute(); reason != "" {
			return reason
		}
	}
	return ""
}

// from returns c and the calls that had the grant after it.
func (g *grant) from(c *call) []*call { return slices.Clone(g.calls[slices.Index(g.calls, c):]) }

// mute says why the call could not report that its grant was lost, or returns "".
func (c *call) mute() string {
	switch {
	case c.returned == 0:
		return "its worker was killed before it could report"
	case c.result == unknown && (!c.inspected || c.holder == c.grant.owner):
		return "its commit had no answer, which is what was reported, and it could not see that its lock was gone"
	case c.result == done && c.grant.released == unanswered:
		return "the release after its commit met a dead node"
	case strings.HasPrefix(c.result, failed) && c.grant.released == unanswered:
		return "the release after its rollback met a dead node"
	case (c.result == duplicate || c.result == stale) && !c.inspected && c.grant.released == unanswered:
		return "it was a repeat, and both the question who has the lock and the release met a dead node"
	}
	return ""
}

// falseAlarm reports whether a call reported a failure without a reason. A reason
// is a fault of its lock, another call that had the lock at the same time or wrote
// without it, and another COMMIT that had no answer. For a commit of unknown outcome
// the reason is a connection that was cut, by the worker too, or a fault of the worker.
func (h *history) falseAlarm(c *call, overlaps []overlap) bool {
	if c.count(notify.VerdictUnknownCommit) > 0 && !c.lost && !slices.ContainsFunc(h.faults, func(f fault) bool {
		return (f.Kind == cut || f.Subject == c.worker) && f.From <= c.caught && f.To >= c.begun
	}) {
		return true
	}
	if len(c.alarms()) == 0 {
		return false
	}
	if slices.ContainsFunc(overlaps, func(o overlap) bool { return o.first == c || o.second == c }) {
		return false
	}
	if c.grant == nil {
		return true
	}
	if c.lapsed() {
		return false
	}
	if slices.ContainsFunc(h.calls, func(other *call) bool {
		return other.key == c.key && other.wrote > 0 && other.wrote <= c.caught && other.over() >= c.grant.asked &&
			(other.grant == nil || other.ended == 0 && other.grant != c.grant)
	}) {
		return false
	}
	return !slices.ContainsFunc(h.faults, func(f fault) bool {
		return f.hit(c.grant) && f.From <= c.caught && f.To >= c.grant.asked
	})
}

// lapsed reports whether the call's lease was lost because no renewal was answered in
// time, as on a machine with too much to do: a little before its grant ends, or when an
// answer had come that the Locker was not told of yet.
func (c *call) lapsed() bool {
	const little = int64(ttl) / 10
	return c.grant != nil && (c.caught >= c.grant.expiry()-little || c.grant.renewed > 0 && c.caught-c.grant.renewed < little) &&
		slices.ContainsFunc(c.alarms(), func(e *notify.Event) bool {
			return e.Verdict == notify.VerdictLost && e.Loss == notify.LossUnrenewed
		})
}

func (f fault) hit(g *grant) bool {
	switch f.Kind {
	case wipe:
		return f.Subject == g.key
	case failover:
		return f.Subject == g.node
	case cut: // a connection is no lock
		return false
	case pause, kill:
	}
	return f.Subject == g.worker
}

// cutWords are the drivers' and the servers' for a connection that was cut.
var cutWords = []string{
	"invalid connection", "bad connection", "Connection was killed", "interrupted",
	"terminating connection", "unexpected EOF", "conn closed", "connection reset", "broken pipe",
	"Deadlock found", "deadlock detected", // of two that waited for its insert
}

// failedUnexplained reports whether the call ended with an error that is not one
// of Do's, nor of a connection that was cut.
func (c *call) failedUnexplained() bool {
	return strings.HasPrefix(c.result, failed) &&
		!slices.ContainsFunc(cutWords, func(s string) bool { return strings.Contains(c.result, s) })
}

// unreported returns how many more operations a worker refused without a lock than its
// events say. One that was killed could not report all, and may have reported calls
// whose end it could not write down.
func (h *history) unreported(worker string) int {
	n, open := -h.refused[worker], 0
	for _, c := range h.calls {
		switch {
		case c.worker != worker:
		case c.result == unavailable:
			n++
		case c.returned == 0:
			open++
		}
	}
	if h.death(worker) > 0 {
		return min(n+open, 0)
	}
	return n
}

// told is what the calls' results add up to.
func (h *history) told(key string, result string) (n int64) {
	for _, c := range h.calls {
		if c.key == key && c.result == result {
			n++
		}
	}
	return n
}

// open counts the calls on key of which nobody knows whether they were
// committed.
func (h *history) open(key string) (n int64) {
	for _, c := range h.calls {
		if c.key == key && c.wrote > 0 && (c.returned == 0 || c.result == unknown) {
			n++
		}
	}
	return n
}

// lost counts the calls whose COMMIT was lost by their worker.
func (h *history) lost() (n int) {
	for _, c := range h.calls {
		if c.lost {
			n++
		}
	}
	return n
}

// results counts the calls by how they ended.
func (h *history) results() map[string]int {
	n := make(map[string]int)
	for _, c := range h.calls {
		word, _, _ := strings.Cut(cmp.Or(c.result, "never returned"), ":")
		n[word]++
	}
	return n
}

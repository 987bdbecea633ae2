package chaos_test

import (
	"cmp"
	"slices"

	"github.com/belaygo/belay/notify"
)

// A call is one call of guard.Do, as its worker saw it. Times are 0 where it did
// not come that far. One with several keys has a leg for each, which is a call, too: the lock
// on each key is judged by itself.
type call struct {
	name, worker, key, kind string

	legs []*call // of the same call of Do, one for each key, that of Do first

	combines bool    // it may share its transaction: see part
	lead     *call   // whose transaction it shares
	mates    []*call // which share its own
	next     *call   // its next part
	made     int64   // the version of the row that it got
	request  int64   // that it serves, or 0
	answer   string  // that it got

	called                        int64
	begun, wrote, ended, returned int64      // begun and wrote by its first attempt, ended by its last
	attempt                       int64      // when its last one began
	looked, committing            int64      // when that one first saw rows, and sent its COMMIT
	session                       session    // that it wrote in
	broken                        int64      // when a statement of it got no answer, for the last time
	version                       int64      // of the row that it has read
	read                          int64      // when
	lost                          commitLoss // how its worker lost its COMMIT, if it did
	doubtful                      bool       // a COMMIT of it got no answer, or an error
	result                        string
	named                         string // the id of the event in its error

	events      []*notify.Event
	caught      int64  // when the first event of a failure was published
	died        int64  // when its worker was killed
	unpublished bool   // its event could not be published
	undone      bool   // the database has lost its commit, and its worker told so
	untold      string // the owner in that event
	inspected   bool   // it asked who has the lock, and was answered
	inspectedAt int64  // when
	holder      string
	grant       *grant
}

// A grant is a lock that the engine gave to a worker, until it released it. Calls
// of one worker may have had it one after the other.
type grant struct {
	worker, key, owner, node string
	by                       string // the call that it was granted to, if that is known, and combines with none
	freedBy                  *call  // the call that released it, if that is known, and combines with none
	asked, granted, release  int64
	renewed, renewing        int64  // when it was for the last time, and when that request was sent
	released                 string // the answer
	calls                    []*call
	waiting                  bool // a caller that was killed waited for it, and may have been handed it
}

// A history is what all workers saw.
type history struct {
	calls  []*call
	byKey  map[string][]*call
	overs  map[*call]int64 // what over has found
	grants []*grant
	faults []fault
	deaths map[string]int64 // by worker
	behind bool             // what others have committed may be missing: see behindNode

	commitsLost map[string]int // by worker: those of requests that its events say the database has lost
	unpublished bool           // an event that told of refusals got lost
	refused     map[string]int // by worker: operations, as its events say that no lock could be acquired for them
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

	databaseKilled faultKind = "database killed"
	monitorKilled  faultKind = "monitor killed"
	linkCut        faultKind = "broker link cut"
	linkAway       faultKind = "broker link away"
	linkMute       faultKind = "broker link mute"
)

// read puts together what the workers saw. Of events only those count that the monitor
// has.
func read(records []*record, faults []fault) *history {
	h := &history{faults: faults, deaths: deathsIn(faults), byKey: make(map[string][]*call), overs: make(map[*call]int64), refused: make(map[string]int), commitsLost: make(map[string]int)}
	for _, r := range records {
		h.calls, h.grants = append(h.calls, r.calls...), append(h.grants, r.grants...)
		for _, e := range r.handed {
			h.hear(r.worker, e)
		}
	}
	for _, c := range h.calls {
		if c.givenBack() {
			c.begun, c.wrote, c.committing, c.ended, c.doubtful = 0, 0, 0, 0, false
		}
		c.died = h.deaths[c.worker]
		h.byKey[c.key] = append(h.byKey[c.key], c)
	}
	h.assign()
	return h
}

// hear adds an event to the call that it is of. The end of an outage belongs to none.
func (h *history) hear(worker string, e *handed) {
	switch {
	case e.event.Instance == sideInstance(worker): // of what is no call
		return
	case e.missing && e.call != nil:
		for _, c := range slices.Concat(e.call.legs, e.call.mates) {
			if e.result != "" {
				c.unpublished, c.untold = true, e.event.Owner
			}
		}
		return
	case e.missing:
		h.unpublished = true
		return
	case e.event.Verdict == notify.VerdictUnavailable:
		h.refused[worker] += e.event.Count
	case e.event.Verdict == notify.VerdictCommitLost:
		h.commitsLost[worker] += e.event.Count
	}
	if e.call != nil {
		e.call.events = append(e.call.events, e.event)
		if len(failures([]*notify.Event{e.event})) > 0 {
			e.call.caught = cmp.Or(e.call.caught, e.at)
		}
	}
}

// deathsIn returns when workers were killed.
func deathsIn(faults []fault) map[string]int64 {
	deaths := make(map[string]int64)
	for _, f := range faults {
		if f.Kind == kill {
			deaths[f.Subject] = f.To
		}
	}
	return deaths
}

// assign finds the grant of each call whose operation began: the one that its event names, as
// another call of its worker may have got the key since it was lost, or the last one that its
// worker had got for the key. A call with several keys that was handed the lock on one has all of
// them: one that has not may look without a lock what a request has come to.
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
		got := at[place{c.worker, c.key}]
		if len(got) > 0 && c.begun == 0 && c.returned == 0 && c.died > 0 {
			got[len(got)-1].waiting = true
		}
		n, _ := slices.BinarySearchFunc(got, c.begun+1, func(g *grant, t int64) int { return cmp.Compare(g.granted, t) })
		if c.begun == 0 || n == 0 || c.lead != nil && c.reporter() == "" {
			continue
		}
		if i := slices.IndexFunc(got, func(g *grant) bool { return g.owner == c.reporter() }); i >= 0 {
			got[i].give(c)
		} else if g := got[n-1]; (g.release == 0 || g.release >= c.begun) && c.begun < g.expiry() && !g.abandoned(c.begun) { // else it runs without a lock
			g.give(c)
		}
	}
	for _, c := range h.calls { // it was handed a lock that it found lost, before its operation began or in a pause
		owner := c.reporter()
		if c.grant != nil || owner == "" {
			continue
		}
		if i := slices.IndexFunc(h.grants, func(g *grant) bool { return g.owner == owner }); i >= 0 {
			h.grants[i].give(c)
		}
	}
	h.takeBack(func(c *call) bool { return c.looks() })
	h.takeBack(func(c *call) bool { return c.grant.excludes(c) })
	h.takeBack(func(c *call) bool { return c.grant.calls[0] != c && c.grant.freedBy != c && !c.locked() })
}

// give notes that a call had the lock, and so had those who share its transaction, unless they report another.
func (g *grant) give(c *call) {
	for _, of := range append([]*call{c}, c.mates...) {
		if of.grant == nil && (of == c || of.begun > 0 && of.reporter() == "") {
			of.grant, g.calls = g, append(g.calls, of)
		}
	}
}

// takeBack takes the grant from each call that was given it by its time alone, not by what it reported, and
// did not have the lock.
func (h *history) takeBack(hadNot func(c *call) bool) {
	for _, c := range h.calls {
		if c.grant != nil && len(c.told()) == 0 && c.untold == "" && hadNot(c) {
			c.grant.takeBack(c)
		}
	}
}

func (g *grant) takeBack(c *call) {
	for _, of := range append([]*call{c}, c.mates...) {
		if of.grant == g {
			of.grant, g.calls = nil, slices.DeleteFunc(g.calls, func(o *call) bool { return o == of })
		}
	}
}

// looks reports whether the call only looked what a request has come to. It had no lock: one that has
// the locks claims the request first, and that is a write.
func (c *call) looks() bool { return c.request != 0 && c.wrote == 0 && c.result == duplicate }

// excludes reports whether c cannot have had the lock: it began before the call that the lock was granted
// to, or while the transaction of a holder ran. Nobody hands a lock over before that has ended. Mates begin in the
// transaction of their leader.
func (g *grant) excludes(c *call) bool {
	return c.lead == nil && c.name != g.by && slices.ContainsFunc(g.calls, func(other *call) bool {
		return other.lead == nil && (other.begun < c.begun && c.begun < other.ended || other.name == g.by && c.begun < other.begun)
	})
}

// reporter returns the owner of the lock whose loss the call has reported, "" if it reported none.
func (c *call) reporter() string {
	if alarms := c.alarms(); len(alarms) > 0 {
		return alarms[0].Owner
	}
	return c.untold
}

// abandoned reports whether a call had ended with an unknown outcome by then: nobody is
// handed its lock, and once its lease would have ended others may go on without one.
func (g *grant) abandoned(by int64) bool {
	return slices.ContainsFunc(g.calls, func(c *call) bool { return c.result == unknown && c.returned < by })
}

// expiry is when a grant has ended at the latest. One that was abandoned, after a
// commit of unknown outcome, is never released.
func (g *grant) expiry() int64 { return max(g.granted, g.renewed) + int64(ttl) }

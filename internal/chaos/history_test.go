package chaos_test

import (
	"cmp"
	"slices"

	"github.com/belaygo/belay/notify"
)

// A call is one call of guard.Do, as its worker saw it. Times are 0 where it did
// not come that far.
type call struct {
	name, worker, key, kind string

	called                        int64
	begun, wrote, ended, returned int64      // begun and wrote by its first attempt, ended by its last
	version                       int64      // of the row that it has read
	read                          int64      // when
	lost                          commitLoss // how its worker lost its COMMIT, if it did
	doubtful                      bool       // a COMMIT of it got no answer, or an error
	result                        string

	events      []*notify.Event
	caught      int64 // when the first event was published
	died        int64 // when its worker was killed
	unpublished bool  // its event could not be published
	inspected   bool  // it asked who has the lock, and was answered
	holder      string
	grant       *grant
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
	calls  []*call
	byKey  map[string][]*call
	grants []*grant
	faults []fault

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

// read puts the lines of the workers together.
func read(lines map[string][]line, faults []fault) *history {
	h := &history{faults: faults, byKey: make(map[string][]*call), refused: make(map[string]int)}
	for worker, ls := range lines {
		calls, grants := make(map[string]*call), make(map[string]*grant)
		for _, l := range ls {
			c := calls[l.Do]
			switch l.At {
			case called:
				c = &call{name: l.Do, worker: worker, key: l.Key, kind: l.Kind, called: l.T}
				calls[l.Do] = c
				h.calls = append(h.calls, c)
			case begun:
				c.begun, c.ended = cmp.Or(c.begun, l.T), 0 // an attempt that has ended ends nothing of the next one
			case loaded:
				c.version, c.read = l.Version, l.T
			case wrote:
				c.wrote = cmp.Or(c.wrote, l.T)
			case lostCommit:
				c.lost = commitLoss(l.Result)
			case ended:
				if l.Result == unanswered { // the server may still execute it
					c.doubtful = true
				} else {
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
			case stored:
				switch {
				case l.Result == "":
				case c == nil:
					h.unpublished = true
				default:
					c.unpublished = true
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
		h.byKey[c.key] = append(h.byKey[c.key], c)
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

package chaos_test

import (
	"cmp"

	"github.com/belaygo/belay/notify"
)

// A record is what one worker saw.
type record struct {
	worker   string
	older    bool // it was of an older build
	calls    []*call
	grants   []*grant // in the order in which they were granted
	handed   []*handed
	samples  []sample
	replies  []reply
	together int            // attempts whose BEGIN was sent with other statements
	tries    map[string]try // by name

	byDo    map[string]*call  // its last part
	running map[string]*call  // by key: who runs a transaction that calls may share
	byOwner map[string]*grant // also those that were asked for only
	byID    map[string]*handed
}

// handed is an event that a worker handed over for publishing.
type handed struct {
	event   *notify.Event
	call    *call // or nil
	at      int64
	last    int64  // when it was handed over again, or at
	stored  bool   // Publish returned nil
	result  string // the error that it returned
	missing bool   // the monitor does not have it
}

func newRecord(worker string) *record {
	return &record{worker: worker, tries: make(map[string]try), byDo: make(map[string]*call), running: make(map[string]*call), byOwner: make(map[string]*grant), byID: make(map[string]*handed)}
}

// recordsOf reads lines that are at hand.
func recordsOf(lines map[string][]line) (all []*record) {
	for worker, ls := range lines {
		r := newRecord(worker)
		for _, l := range ls {
			r.add(l)
		}
		all = append(all, r)
	}
	return all
}

// add reads the next line of the worker's journal.
func (r *record) add(l line) {
	switch l.At {
	case called:
		r.calls = append(r.calls, newLegs(r.worker, l)...)
		r.byDo[l.Do] = r.calls[len(r.calls)-1].legs[0]
	case begun:
		if l.Result == together {
			r.together++
		}
		c := r.byDo[l.Do]
		if c.combines {
			c = r.part(c, l.T)
			r.running[c.key] = c
		}
		c.addAll(l)
	case loaded:
		r.load(r.byDo[l.Do], l)
	case looked, wrote, broken, committing, ended:
		c := r.byDo[l.Do]
		c.addAll(l)
		if l.At == ended && r.running[c.key] == c {
			delete(r.running, c.key)
		}
	case returned:
		for _, c := range r.byDo[l.Do].legs {
			c.add(l)
		}
	case inspected:
		for _, c := range r.byDo[l.Do].on(l.Key) {
			c.add(l)
			for _, m := range c.mates {
				m.add(l)
			}
		}
	case event:
		if e := r.byID[l.Event.ID]; l.Event.ID != "" && e != nil {
			e.last = l.T // handed over again, as nobody took it: its process was paused
			return
		}
		c := r.byDo[l.Do]
		if g := r.byOwner[l.Event.Owner]; c != nil && c.combines && g != nil && g.granted > c.led() {
			c = r.part(c, l.T) // it was handed another lock, and could not begin
		}
		e := &handed{event: l.Event, call: c.leg(l.Key), at: l.T, last: l.T}
		r.byID[l.Event.ID], r.handed = e, append(r.handed, e)
	case stored:
		e := r.byID[l.ID]
		e.stored, e.result = l.Result == "", l.Result
	case asked:
		r.byOwner[l.Owner] = &grant{worker: r.worker, key: l.Key, owner: l.Owner, asked: l.T}
	case granted:
		g := r.byOwner[l.Owner]
		g.granted, g.node = l.T, l.Node
		if c := r.byDo[l.Do]; c != nil && !c.combines {
			g.by = l.Do
		}
		r.grants = append(r.grants, g)
	case renewed:
		g := r.byOwner[l.Owner]
		g.renewed, g.renewing = l.T, cmp.Or(l.Sent, l.T) // an older build does not note that
	case release:
		g := r.byOwner[l.Owner]
		if c := r.byDo[l.Do]; c != nil && !c.combines && g.release == 0 {
			g.freedBy = c.leg(l.Key)
		}
		g.release = cmp.Or(g.release, l.T)
	case released:
		g := r.byOwner[l.Owner]
		g.released = cmp.Or(g.released, l.Result)
	case sought:
		r.tries[l.Do] = try{No: l.Request, worker: r.worker, asked: l.T}
	case replied:
		got := r.tries[l.Do] // of an older build there is none
		got.No, got.replied = l.Request, l.T
		r.tries[l.Do] = got
		r.replies = append(r.replies, reply{No: l.Request, Name: l.Do, Result: l.Result, Answer: l.Answer, asked: got.asked, at: l.T})
	case sampled:
		l.Sample.at, l.Sample.ops = l.T, float64(len(r.calls))
		r.samples = append(r.samples, *l.Sample)
	}
}

func (c *call) add(l line) {
	switch l.At {
	case begun:
		c.begun, c.attempt = cmp.Or(c.begun, l.T), l.T
		c.looked, c.committing, c.ended = 0, 0, 0 // an attempt that has ended ends nothing of the next one
	case looked:
		c.looked = cmp.Or(c.looked, l.T)
	case loaded:
		c.version, c.read = l.Version, l.T
	case wrote:
		c.wrote, c.session = cmp.Or(c.wrote, l.T), session{l.Session, l.Server}
	case broken:
		c.broken = l.T
	case committing:
		c.committing, c.session, c.lost = l.T, session{l.Session, l.Server}, commitLoss(l.Result)
	case ended:
		if l.Result == unanswered { // the server may still execute it
			c.doubtful = true
		} else {
			c.ended = l.T
		}
	case inspected:
		c.inspected, c.holder, c.inspectedAt = l.Result != unanswered, l.Owner, l.T
	case returned:
		c.returned, c.result, c.named, c.made, c.answer = l.T, l.Result, l.ID, l.Version, l.Answer
	}
}

package guard

import (
	"context"
	"errors"
	"time"

	"github.com/belaygo/belay/internal/parallel"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/notify"
)

// A firstLayer is where all calls of a Guard acquire their keys.
type firstLayer struct {
	locker   *lock.Locker
	outages  *outages
	refusals *refusals
	cfg      Config
	metrics  *metrics
}

// A keySet is the keys of a plan, and what holds each: a lock, a place in the local queue
// during an outage, or nothing yet.
type keySet struct {
	plan     *plan
	layer    *firstLayer
	ctx      context.Context // the caller's, and what the Observer adds
	holds    []hold          // of the keys, in their order
	one      [1]hold         // most calls have one
	outages  []*outage       // that the call is counted in, as one of those who may run without a lock
	unmarked bool            // marks are neither heeded nor set

	outer     *keySet // of the Call that the run is a part of, nil if that holds nothing for it
	uncounted bool    // it is not one of those that run without a lock: its transactions are
}

// hold is the lock on one key of a call, or what stands for it.
type hold struct {
	*planned
	lease   *lock.Lease
	ctx     context.Context // of the lease
	nested  bool            // the caller's context has a lease on the key, which others may run under, too
	without error           // why there is no lock but only a place in the local queue
	outage  *outage         // which it is without for
	settled bool            // the lease has been given back
	gone    error           // what its release found, if the lock was lost
}

// of makes the set that of a plan. Nothing holds its keys yet.
func (s *keySet) of(p *plan) {
	s.plan, s.holds = p, s.one[:0]
	for i := range p.keys {
		s.holds = append(s.holds, hold{planned: &p.keys[i]})
	}
}

// find returns the hold on key, or else that on the key that Do was given.
func (s *keySet) find(key string) *hold {
	var main *hold
	for i := range s.holds {
		switch h := &s.holds[i]; h.key {
		case key:
			return h
		case s.plan.main:
			main = h
		}
	}
	return main
}

// lost returns the loss of a hold.
func (h *hold) lost(err error) loss { return loss{h.key, err, h.inherited()} }

// inherited reports whether another caller had the grant before and handed it over.
func (h *hold) inherited() bool {
	g := h.lease.Grant()
	return g.FirstToken != g.Token
}

// lapse returns a lease that is no longer believed in, nil if there is none.
func (s *keySet) lapse() *loss {
	var lapses []loss
	for i := range s.holds {
		h := &s.holds[i]
		if h.lease == nil {
			continue
		}
		if err := h.lease.Err(); err != nil {
			lapses = append(lapses, h.lost(err))
		}
	}
	return firstLoss(lapses)
}

// alive returns an error if a lease is no longer believed in.
func (s *keySet) alive() error {
	if l := s.lapse(); l != nil {
		return l.err
	}
	return nil
}

// without returns why the call runs without the lock on a key, or nil if it has all.
func (s *keySet) without() error {
	for i := range s.holds {
		if err := s.holds[i].without; err != nil {
			return err
		}
	}
	return nil
}

// has reports whether the lock of another run is the one on the first key of s, which may be nil.
func (s *keySet) has(other *hold) bool {
	if s == nil || other.lease == nil {
		return false
	}
	own := &s.holds[0]
	mine, theirs := own.lease.Grant(), other.lease.Grant()
	return own.key == other.key && mine.Owner == theirs.Owner && mine.Token == theirs.Token
}

// returned reports whether locks that the call runs without are granted again. It is false for a
// nil s.
func (s *keySet) returned() bool {
	if s == nil {
		return false
	}
	outages := s.away()
	return len(outages) > 0 && !s.layer.outages.last(outages)
}

// ttl returns for how long all locks last without a renewal.
func (s *keySet) ttl() time.Duration {
	return s.holds[0].lease.Grant().TTL // one Locker has one ttl
}

// state returns what is known of key, or else of the key that Do was given.
func (s *keySet) state(key string) keyState {
	h := s.find(key)
	return keyState{h.key, h.without, h.nested}
}

// lapsed returns why the lease of key, or else that of the key that Do was given, is no longer
// believed in.
func (s *keySet) lapsed(key string) error { return s.find(key).lease.Err() }

// patience is how long an attempt may wait for another one with its request: for as long as the
// call may wait, and for half of the lock's ttl at most.
func (s *keySet) patience() time.Duration {
	return min(s.ttl()/2, time.Until(s.plan.until))
}

// within returns ctx, but it ends with the first lease that ends.
func (s *keySet) within(ctx context.Context) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stops := make([]func() bool, 0, 1)
	for i := range s.holds {
		if lease := s.holds[i].ctx; lease != nil {
			stops = append(stops, context.AfterFunc(lease, func() { cancel(context.Cause(lease)) }))
		}
	}
	return ctx, func(cause error) {
		for _, stop := range stops {
			stop() // or the release would make a goroutine that ends ctx
		}
		cancel(cause)
	}
}

// value returns what the contexts of the leases have for key.
func (s *keySet) value(key any) any {
	for i := range s.holds {
		if v := s.holds[i].ctx.Value(key); v != nil {
			return v
		}
	}
	return nil
}

// describe adds to an event about a lock what is known of it.
func (s *keySet) describe(ev *notify.Event) {
	ev.Keys = s.plan.several()
	h := s.find(ev.Key)
	if h.without != nil {
		ev.Place = place(h.outage.place)
		return
	}
	grant := h.lease.Grant()
	ev.Place = place(grant.Place)
	ev.Owner = grant.Owner
	ev.Token = grant.Token
	if grant.FirstToken != grant.Token {
		ev.FirstToken = grant.FirstToken
	}
	ev.AcquiredAt = grant.AcquiredAt
	ev.TTL = grant.TTL
	ev.Deadline = grant.Deadline
}

// settle ends the leases after an operation that ended so. It gives the locks back, all at
// once, and returns those that were found gone. Those of an operation of unknown outcome it
// leaves to their ttl. done tells that the request which a key names has taken effect, now or
// before.
func (s *keySet) settle(o notify.Outcome, done bool) []loss {
	if o == notify.OutcomeUnknown {
		for i := range s.holds {
			s.holds[i].settled = true
			s.holds[i].lease.Abandon()
		}
		return nil
	}
	if len(s.holds) == 1 { // without the closure's allocation
		s.release(&s.holds[0], done)
	} else {
		parallel.Do(len(s.holds), func(i int) { s.release(&s.holds[i], done) })
	}
	var gone []loss
	for i := range s.holds {
		if h := &s.holds[i]; h.gone != nil {
			gone = append(gone, h.lost(h.gone))
		}
	}
	return gone
}

// release gives a lock back, if there is one and nobody has given it back. A release that fails
// changes nothing about what was done: the Locker goes on trying.
func (s *keySet) release(h *hold, done bool) {
	if h.lease == nil || h.settled {
		return
	}
	h.settled = true
	var err error
	if keep := s.mark(h); done && keep > 0 && h.without == nil {
		err = h.lease.ReleaseMarked(s.ctx, keep)
	} else {
		err = h.lease.Release(s.ctx)
	}
	switch {
	case err == nil:
	case errors.Is(err, lock.ErrClosed) && time.Now().Before(h.lease.Grant().Deadline): // nobody has it yet
	case errors.Is(err, lock.ErrLost):
		h.gone = err
	default:
		s.layer.cfg.Logger.Warn("release lock", "key", h.key, "error", err)
	}
}

// mark returns for how long the first layer is to remember that what a key names is done.
func (s *keySet) mark(h *hold) time.Duration {
	if s.unmarked {
		return 0
	}
	return h.mark
}

// reset prepares the set to be acquired anew.
func (s *keySet) reset() {
	for i := range s.holds {
		s.holds[i] = hold{planned: s.holds[i].planned}
	}
}

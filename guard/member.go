package guard

import "context"

// A member is a call that may share its transaction.
type member struct {
	*waiter
	caller caller
	turn   *turn           // as the Observer and the metrics see it
	traced context.Context // what the Observer has made of the caller's
	steps  []foldable
	serves *serving // its request, nil if there is none
	part   part     // in the last round
}

// A caller is the call of a member.
type caller interface {
	run() *run
	attempts(r *run) error // makes attempts, after r has the lock
	alone() error          // the same, from the begin
}

// A part is what a round has made of the change of a member.
type part struct {
	own   error // of the change
	apart bool  // the change is left out: the call runs alone, after the others if it leads
	in    bool  // the change was made, or failed; guarded by round.mu
}

// alone runs the call in transactions of its own, after its turn or in its place.
func (m *member) alone(how string) error {
	m.turn.became = how
	return m.caller.alone()
}

// served returns the error of a repeat if the request of m is known. Who knows that needs no
// lock: if the crew's is gone, the crew finds out.
func (m *member) served() error {
	if m.serves == nil || ended(m.ctx) {
		return nil
	}
	return m.serves.served(m.traced)
}

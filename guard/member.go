package guard

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/belaygo/belay/internal/claim"
	"github.com/belaygo/belay/lock"
)

// A member is a call that may share its transaction.
type member struct {
	caller  caller
	lines   *lines
	key     string
	until   time.Time       // when the wait for the key ends
	wait    *turn           // as the Observer and the metrics see it
	ctx     context.Context // the caller's
	traced  context.Context // what the Observer has made of it
	steps   []foldable
	shape   any          // of the steps: those of a crew have the same
	serves  *claiming    // the request, if there is one
	claim   *claim.Claim // of the request, in this attempt
	turn    chan signal  // one at a time
	round   *round       // set before the signal
	ended   func(error)  // ends the Observer's step of its turn
	own     error        // of its change in the last round
	err     error        // what the call returns
	foreign bool         // its request was served under other keys
	apart   bool         // its change is left out: it runs alone, after the others if it leads
	in      bool         // its change was made, or failed, in the round; guarded by round.mu

	mu   sync.Mutex
	used bool // it leads, or the crew's transaction may touch its rows
	left bool // it has an answer
}

// A caller is the call of a member.
type caller interface {
	run() *run
	attempts(r *run) error // makes attempts, after r has the lock
	alone() error          // the same, from the begin
}

// A signal tells a member what to do next.
type signal int

const (
	turnLead   signal = iota // acquire the lock for the next crew
	turnChange               // make the change
	turnDone                 // return err
	turnAlone                // run without the others
	turnApart                // the same, but the request may be known already
)

// join queues for the key, and then does what the crew's leader, or the line, tells the
// member, until the call is done. traced is what the Observer has made of the context.
func (m *member) join(traced context.Context) error {
	m.traced = traced
	if m.lines.join(m) {
		return m.lead()
	}
	waited, cancel := context.WithDeadline(m.ctx, m.until)
	defer cancel()
	m.wait.begin(m.traced)
	defer func() {
		m.wait.over(errPanicked) // if the change does
		m.endTurn(errPanicked)
	}()
	for {
		next, err := m.await(waited)
		if err != nil {
			m.wait.over(err)
			m.endTurn(err)
			return err
		}
		switch next {
		case turnLead:
			m.endTurn(errApart)
			return m.lead()
		case turnApart:
			if err := m.served(); err != nil {
				m.wait.over(err)
				m.endTurn(err)
				return err
			}
			fallthrough
		case turnAlone:
			m.endTurn(errApart)
			return m.alone(combinedAlone)
		case turnDone:
			m.wait.over(nil)
			m.endTurn(m.err)
			return m.err
		case turnChange:
			m.beginTurn()
			if in, alone := m.round.step(m); alone != "" {
				m.endTurn(errApart)
				return m.alone(alone)
			} else if !in {
				m.endTurn(m.own)
				return m.own
			}
		}
	}
}

// errApart is how the turn of a member ends that runs alone after all.
var errApart = errors.New("guard: the call runs in a transaction of its own")

// beginTurn notes that the wait for the lock is over, and that for the COMMIT begins.
func (m *member) beginTurn() {
	m.wait.over(nil)
	m.wait.became = combinedShared
	if m.ended == nil {
		_, m.ended = m.wait.observer.Start(m.traced, StepTransaction, m.key)
	}
}

func (m *member) endTurn(err error) {
	if end := m.ended; end != nil {
		m.ended = nil
		end(err)
	}
}

// alone runs the call in transactions of its own, after its turn or in its place.
func (m *member) alone(how string) error {
	m.wait.became = how
	return m.caller.alone()
}

// await returns the next signal, or an error if m's wait ends while it is in its line, or
// its context before its turn.
func (m *member) await(waited context.Context) (signal, error) {
	select {
	case next := <-m.turn:
		return next, nil
	case <-waited.Done():
	}
	if m.lines.quit(m) {
		return 0, m.refused()
	}
	select {
	case next := <-m.turn:
		return next, nil
	case <-m.ctx.Done():
	}
	if m.leave() {
		return 0, m.ctx.Err()
	}
	return <-m.turn, nil
}

// leave takes m out of its crew, while that waits for a connection or for the row. It
// reports false if the crew has a use for m's rows: an answer comes.
func (m *member) leave() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.left = !m.used
	return m.left
}

// use has m stay until it has an answer. It reports false if m has left.
func (m *member) use() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.used = !m.left
	return m.used
}

// gone reports whether m has left.
func (m *member) gone() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.left
}

// spare lets m leave again, as its rows are as they were.
func (m *member) spare() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.used = false
}

// waits reports whether m still waits for the key.
func (m *member) waits() bool { return m.ctx.Err() == nil && time.Now().Before(m.until) }

// refused is the error of a member whose wait has ended.
func (m *member) refused() error {
	held := &lock.HeldError{Key: m.key, Holder: lock.Holder{Place: lock.Place{Slot: -1}}}
	if err := m.ctx.Err(); err != nil {
		return fmt.Errorf("%w: %w: %w", ErrBusy, held, err)
	}
	return fmt.Errorf("%w: %w", ErrBusy, held)
}

// lead acquires the lock, and runs the crew that has gathered meanwhile.
func (m *member) lead() error {
	r := m.caller.run()
	defer r.leave()
	taken := false
	take := func(n int) []*member {
		taken = true
		return m.lines.take(m, n)
	}
	defer func() {
		if !taken { // somebody else acquires it
			take(0)
		}
	}()
	if err := r.enter(); err != nil {
		return err
	}
	others := maxCrew - 1
	if r.keys.without() != nil {
		others = 0 // without the lock each has its own race to win
	}
	crew := take(others)
	if len(crew) == 0 {
		r.reporter.metrics.crewSize.Observe(1)
		m.wait.became = combinedAlone
		return m.caller.attempts(r)
	}
	return share(m, crew, r)
}

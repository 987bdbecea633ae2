package guard

import (
	"context"
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

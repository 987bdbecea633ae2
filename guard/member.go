package guard

import (
	"context"
	"fmt"
	"time"

	"github.com/belaygo/belay/lock"
)

// A member is a call that may share its transaction.
type member struct {
	call  *call
	ctx   context.Context // the caller's
	steps []foldable
	shape any         // of the steps: those of a crew have the same
	turn  chan signal // one at a time
	round *round      // set before the signal
	err   error       // of its own change, and then what the call returns
	apart bool        // it leads, and its own change is left out: it runs alone afterwards
	in    bool        // its change was made, or failed, in the round; guarded by round.mu
}

// A signal tells a member what to do next.
type signal int

const (
	turnLead   signal = iota // acquire the lock for the next crew
	turnChange               // make the change
	turnDone                 // return err
	turnAlone                // run without the others
)

// join queues for the key, and then does what the crew's leader, or the line, tells the
// member, until the call is done.
func (m *member) join() error {
	c := m.call
	if c.guard.lines.join(m) {
		return m.lead()
	}
	waited, cancel := context.WithDeadline(m.ctx, c.until)
	defer cancel()
	for {
		next, ok := m.await(waited)
		if !ok || next == turnChange || next == turnDone {
			c.hasWaited()
		}
		if !ok {
			return m.refused()
		}
		switch next {
		case turnLead:
			return m.lead()
		case turnAlone:
			return c.alone()
		case turnDone:
			return m.err
		case turnChange:
			if in, late := m.round.step(m); late {
				return c.alone()
			} else if !in {
				return m.err
			}
		}
	}
}

// await returns the next signal. ok is false if waited ends while m is in its line.
func (m *member) await(waited context.Context) (next signal, ok bool) {
	select {
	case next = <-m.turn:
		return next, true
	case <-waited.Done():
	}
	if m.call.guard.lines.quit(m) {
		return 0, false
	}
	return <-m.turn, true
}

// waits reports whether m still waits for the key.
func (m *member) waits() bool { return m.ctx.Err() == nil && time.Now().Before(m.call.until) }

// refused is the error of a member whose wait has ended.
func (m *member) refused() error {
	held := &lock.HeldError{Key: m.call.key}
	if err := m.ctx.Err(); err != nil {
		return fmt.Errorf("%w: %w: %w", ErrBusy, held, err)
	}
	return fmt.Errorf("%w: %w", ErrBusy, held)
}

// anew returns a call that makes the member's change alone. ctx is what the Observer made
// of the caller's.
func (m *member) anew(ctx context.Context) *call {
	c := m.call
	again := &call{options: c.options, guard: c.guard, key: c.key, op: c.change.Run, change: c.change, ctx: ctx, until: c.until, waited: true}
	_ = again.plan() // as the first time
	return again
}

// lead acquires the lock, and runs the crew that has gathered meanwhile.
func (m *member) lead() error {
	c := m.call
	defer c.leave()
	taken := false
	take := func(n int) []*member {
		taken = true
		return c.guard.lines.take(m, n)
	}
	defer func() {
		if !taken { // somebody else acquires it
			take(0)
		}
	}()
	if err := c.enter(); err != nil {
		return err
	}
	others := maxCrew - 1
	if c.without() != nil {
		others = 0 // without the lock each has its own race to win
	}
	crew := take(others)
	if len(crew) == 0 {
		return c.run()
	}
	return share(m, crew)
}

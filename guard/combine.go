package guard

import (
	"context"
	"errors"
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

// alone runs the call in transactions of its own, after its turn or in its place.
func (m *member) alone(how string) error {
	m.wait.became = how
	return m.caller.alone()
}

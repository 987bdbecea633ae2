package guard

import (
	"context"
	"errors"
)

// join queues m for the key, and then does what the crew's leader, or the line, tells m, until
// the call is done. traced is what the Observer has made of the context.
func (c *crews) join(traced context.Context, m *member) error {
	m.traced = traced
	if c.lines.join(m) {
		return c.lead(m)
	}
	waited, cancel := context.WithDeadline(m.ctx, m.until)
	defer cancel()
	m.turn.begin(m.traced)
	defer m.turn.stop(errPanicked) // if the change does
	for {
		s, err := m.await(waited, func() bool { return c.lines.quit(m) })
		if err != nil {
			m.turn.stop(err)
			return err
		}
		switch s.next {
		case turnLead:
			m.turn.part(errApart)
			return c.lead(m)
		case turnApart:
			if err := m.served(); err != nil {
				m.turn.stop(err)
				return err
			}
			fallthrough
		case turnAlone:
			m.turn.part(errApart)
			return m.alone(combinedAlone)
		case turnDone:
			m.turn.over(nil)
			m.turn.part(s.err)
			return s.err
		case turnChange:
			m.turn.share(m.traced)
			if t := s.change(); t.alone != "" {
				m.turn.part(errApart)
				return m.alone(t.alone)
			} else if !t.in {
				m.turn.part(t.err)
				return t.err
			}
		}
	}
}

// errApart is how the turn of a member ends that runs alone after all.
var errApart = errors.New("guard: the call runs in a transaction of its own")

// lead acquires the lock, and runs the crew that has gathered meanwhile.
func (c *crews) lead(m *member) error {
	r := m.caller.run()
	defer r.leave()
	taken := false
	take := func(n int) []*member {
		taken = true
		return c.lines.take(m, n)
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
	all := take(others)
	if len(all) == 0 {
		r.reporter.metrics.crewSize.Observe(1)
		m.turn.became = combinedAlone
		return m.caller.attempts(r)
	}
	return c.share(m, all, r)
}

// share runs a crew and returns the answer of its leader, whose run has the lock.
func (c *crews) share(leader *member, others []*member, r *run) error {
	k := &crew{crews: c, all: append([]*member{leader}, others...), run: r}
	defer k.scatter() // if somebody's code panics
	r.handTo(k)
	leader.turn.became = combinedShared
	for {
		cut := k.attempt()
		if cut && leader.ctx.Err() != nil {
			return k.handOver()
		}
		if cut || r.series.again() {
			k.dismiss()
			continue
		}
		if k.end() {
			if leader.part.apart {
				if err := leader.served(); err != nil {
					return err
				}
			}
			return leader.alone(combinedAlone)
		}
		return k.err
	}
}

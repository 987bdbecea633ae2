package simdb

import "slices"

// A pooler gives a server session to a connection for one transaction. The one that has
// been free for longest comes first, so that sessions change.
type pooler struct {
	made  int
	free  []*session
	waits []*waiter
}

// acquire returns the session of a connection, and waits for one if all are taken.
func (c *conn) acquire() *session {
	db := c.db
	db.take()
	defer db.pass()
	p := &db.pooler
	for c.session == nil {
		p.free = slices.DeleteFunc(p.free, func(s *session) bool { return s.ended })
		switch {
		case len(p.free) > 0:
			c.session, p.free = p.free[0], p.free[1:]
		case p.made < db.knobs.Pooler:
			p.made++
			c.open()
		default:
			w := newWaiter()
			p.waits = append(p.waits, w)
			db.pass()
			<-w.turn
		}
	}
	return c.session
}

// release gives the session back, unless it is in a transaction.
func (c *conn) release(s *session) {
	if c.db.knobs.Pooler == 0 {
		return
	}
	c.db.with(func() {
		p := &c.db.pooler
		switch {
		case s.ended:
			p.made--
		case s.tx != nil:
			return
		default:
			p.free = append(p.free, s)
		}
		c.session = nil
		if len(p.waits) > 0 {
			c.db.wake(p.waits[0], nil)
			p.waits = p.waits[1:]
		}
	})
}

package simdb

import (
	"context"
	"slices"
)

// A pooler gives a server session to a connection for one transaction. The one that has
// been free for longest comes first, so that sessions change.
type pooler struct {
	sessions []*session
	free     []*session
	waits    []*waiter
}

// wake lets those look again that wait for a session.
func (p *pooler) wake(db *Database) {
	for _, w := range p.waits {
		db.wake(w, nil)
	}
	p.waits = nil
}

// acquire returns the session of a connection, and waits for one until ctx ends if all
// are taken. It returns nil if there is none.
func (c *conn) acquire(ctx context.Context) *session {
	db := c.db
	db.take()
	defer db.pass()
	p := &db.pooler
	ended := func(s *session) bool { return s.ended }
	for c.session == nil && db.up && ctx.Err() == nil && !c.dead.Load() {
		p.sessions, p.free = slices.DeleteFunc(p.sessions, ended), slices.DeleteFunc(p.free, ended)
		switch {
		case len(p.free) > 0:
			c.session, p.free = p.free[0], p.free[1:]
		case len(p.sessions) < db.knobs.Pooler:
			c.open()
			p.sessions = append(p.sessions, c.session)
		default:
			w := newWaiter()
			p.waits = append(p.waits, w)
			stop := context.AfterFunc(ctx, func() { db.with(func() { db.wake(w, nil) }) })
			db.pass()
			<-w.turn
			stop()
		}
	}
	return c.session
}

// release gives the session back, unless it is in a transaction.
func (c *conn) release(s *session) {
	if c.db.knobs.Pooler == 0 || s.tx != nil && !s.ended {
		return
	}
	c.session = nil
	if !s.killed {
		c.db.pooler.free = append(c.db.pooler.free, s)
	}
	c.db.pooler.wake(c.db)
}

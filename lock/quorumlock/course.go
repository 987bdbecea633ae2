package quorumlock

import "github.com/belaygo/belay/lock/lockengine"

// A hold names the lock of an owner.
type hold struct{ key, owner string }

func holdOf(r lockengine.Request) hold { return hold{r.Key, r.Owner} }

// A course is the requests about one hold that are on their way. They are sent to each node one
// after the other, because a release must not overtake the acquire before it.
type course struct {
	last     []chan struct{} // the latest request at each node, closed when it has ended
	ballots  []*ballot       // the latest that has asked each node
	requests int             // how many requests and renewals are on their way; the course ends with the last
	released bool            // whether a release was sent after the oldest renewal that is on its way
}

// begin counts a request of a hold. The caller holds e.mu.
func (e *engine) begin(h hold) *course {
	c := e.courses[h]
	if c == nil {
		c = &course{last: make([]chan struct{}, len(e.nodes)), ballots: make([]*ballot, len(e.nodes))}
		e.courses[h] = c
	}
	c.requests++
	return c
}

// end ends a request that begin has counted. The caller holds e.mu.
func (e *engine) end(h hold, c *course) {
	if c.requests--; c.requests == 0 {
		delete(e.courses, h)
	}
}

// send runs request when the earlier requests about the same hold at the node have ended. It does
// not wait for that. The caller holds e.mu.
func (e *engine) send(h hold, node int, request func()) {
	c := e.begin(h)
	before, done := c.last[node], make(chan struct{})
	c.last[node] = done
	e.running.Go(func() {
		defer func() {
			close(done)
			e.mu.Lock()
			defer e.mu.Unlock()
			e.end(h, c)
		}()
		if before != nil {
			<-before
		}
		request()
	})
}

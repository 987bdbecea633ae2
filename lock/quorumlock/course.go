package quorumlock

import "github.com/belaygo/belay/lock"

// A hold names what an owner has at each node.
type hold struct{ key, owner string }

func holdOf(r lock.Request) hold { return hold{r.Key, r.Owner} }

// A course is the requests about one hold that are on their way. At each node they are
// sent one after the other: a release must not overtake the acquire before it.
type course struct {
	last     []chan struct{} // the latest request at each node, closed when it has ended
	requests int             // on their way, and renewals; the course ends with the last
	released bool            // since the oldest renewal on its way was sent
}

// begin counts a request of a hold. The caller holds e.mu.
func (e *Engine) begin(h hold) *course {
	c := e.courses[h]
	if c == nil {
		c = &course{last: make([]chan struct{}, len(e.nodes))}
		e.courses[h] = c
	}
	c.requests++
	return c
}

// end is the end of what begin has counted. The caller holds e.mu.
func (e *Engine) end(h hold, c *course) {
	if c.requests--; c.requests == 0 {
		delete(e.courses, h)
	}
}

// send has request run when those about the same hold at the node before it have ended.
// The caller holds e.mu.
func (e *Engine) send(h hold, node int, request func()) {
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

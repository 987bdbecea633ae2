package guard

import (
	"sync"
	"time"

	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/notify"
)

const (
	// firstRefusals is how long refusals are counted before the first event of them.
	firstRefusals = 2 * time.Second
	// moreRefusals is how long they are counted before the next one, and twice as
	// long before each further one, up to mostRefusals.
	moreRefusals = 10 * time.Second
	mostRefusals = time.Minute
	// maxRefusing bounds the nodes whose refusals are counted apart.
	maxRefusing = 64
)

// refusals are the operations that the policy Refuse has refused because their lock
// could not be acquired. While a node's are counted, one goroutine publishes their
// number every now and then; it ends after an interval without any.
type refusals struct {
	mu sync.Mutex
	at map[string]*notify.Event // by node that is counted; nil if there is nothing to publish
}

func newRefusals() *refusals { return &refusals{at: make(map[string]*notify.Event)} }

// count counts a refusal at a node. It returns the name under which it is counted, and
// whether that has just begun. begin builds the event of that name if this is its first
// refusal.
func (r *refusals) count(node string, begin func(counted string) notify.Event) (counted string, begun bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	ev, known := r.at[node]
	if !known && len(r.at) >= maxRefusing {
		node = "" // together with others
		ev, known = r.at[node]
	}
	if ev != nil {
		ev.Count++
		return node, false
	}
	first := begin(node)
	r.at[node] = &first
	return node, !known
}

// take returns what is to be published of a node. If it is nothing, the node is not
// counted any more.
func (r *refusals) take(node string) *notify.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	ev := r.at[node]
	r.at[node] = nil
	if ev == nil {
		delete(r.at, node)
	}
	return ev
}

// countRefusal counts c, whose lock could not be acquired because of err.
func (g *Guard) countRefusal(c *call, err error) {
	at := locate(g.locker.Engine(), c.key)
	node, begun := g.refusals.count(at.Node, func(counted string) notify.Event {
		if counted != at.Node {
			return c.refusedEvent(lock.Place{Slot: -1}) // of several nodes
		}
		return c.refusedEvent(at)
	})
	if !begun {
		return
	}
	g.cfg.Logger.Warn("lock unavailable, operations are refused", "node", at.Node, "key", c.key, "error", err)
	g.running.add() // Close waits for the last event
	go g.reportRefusals(node)
}

func (c *call) refusedEvent(at lock.Place) notify.Event {
	ev := c.guard.event(notify.VerdictUnavailable, notify.OutcomeRolledBack, c.key)
	ev.Place = place(at)
	c.guard.trace(c.ctx, &ev)
	return ev
}

// reportRefusals publishes how many operations are refused at a node, until an
// interval passes without any. Once Close is called, it does not wait any more.
func (g *Guard) reportRefusals(node string) {
	defer g.running.leave()
	timer := time.NewTimer(firstRefusals)
	defer timer.Stop()
	for pause := moreRefusals; ; pause = min(2*pause, mostRefusals) {
		select {
		case <-timer.C:
		case <-g.outages.halt.Done():
		}
		ev := g.refusals.take(node)
		if ev == nil {
			return
		}
		g.publish(g.outages.halt, *ev)
		timer.Reset(pause)
	}
}

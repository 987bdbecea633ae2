package guard

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/notify"
)

// askAgain is how often the lock is asked whether it is back.
const askAgain = 500 * time.Millisecond

// outages are the places where the lock can't be asked for now, under the policy
// DBOnly. Between the two events of an outage, its begin and its end, operations
// there do not ask for the lock at all; one goroutine does.
type outages struct {
	admitted chan struct{} // as many as run without the lock
	halt     context.Context
	stop     context.CancelFunc

	n      atomic.Int32 // how many there are
	past   atomic.Int64 // how many have ended
	mu     sync.Mutex
	at     map[string]*outage // by node
	asking map[string]*asking // by node
}

// asking are those who wait for a lock of one node.
type asking struct {
	ctx   context.Context // ends when an outage begins there
	begun context.CancelFunc
}

type outage struct {
	key       string // one that could not be locked
	place     lock.Place
	cause     error
	ran       atomic.Int64 // operations without the lock
	running   atomic.Int64 // that have not ended
	committed atomic.Int64 // that were committed
	unknown   atomic.Int64 // of which that could not be found out
}

func newOutages(limit int) *outages {
	o := &outages{admitted: make(chan struct{}, limit), at: make(map[string]*outage), asking: make(map[string]*asking)}
	o.halt, o.stop = context.WithCancel(context.Background())
	return o
}

// on returns the outage that key falls under, or nil.
func (s *outages) on(l *lock.Locker, key string) *outage {
	if s.n.Load() == 0 {
		return nil
	}
	node := locate(l.Engine(), key).Node
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.at[node]
}

// errBegun: an outage has begun.
var errBegun = errors.New("an outage has begun")

// until returns ctx for one who waits for the lock on key: it ends, with errBegun,
// when an outage begins that key falls under. Nobody would wait for such a lock.
func (s *outages) until(ctx context.Context, l *lock.Locker, key string) (context.Context, context.CancelFunc) {
	begun := s.beginning(locate(l.Engine(), key).Node)
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(begun, func() { cancel(errBegun) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

// beginning returns a context that ends when an outage begins at node, or has
// ended if there is one.
func (s *outages) beginning(node string) context.Context {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.askingAt(node).ctx
}

// rouse ends the waiting for locks of node, all the same whether there is an
// outage. The caller holds s.mu.
func (s *outages) rouse(node string) {
	if a := s.asking[node]; a != nil && s.at[node] == nil {
		a.begun()
		delete(s.asking, node)
	}
}

// askingAt returns those who wait for a lock of node. The caller holds s.mu.
func (s *outages) askingAt(node string) *asking {
	a := s.asking[node]
	if a == nil {
		a = new(asking)
		a.ctx, a.begun = context.WithCancel(context.Background())
		s.asking[node] = a
	}
	return a
}

// overSince reports whether an outage has ended since so many were past, and key
// falls under none: then the lock can be asked for again.
func (g *Guard) overSince(key string, past int64) bool {
	return g.outages.past.Load() != past && g.outages.on(g.locker, key) == nil
}

// admit waits until one more may run without the lock.
func (s *outages) admit(ctx context.Context, limit time.Duration) error {
	select {
	case s.admitted <- struct{}{}:
		return nil
	default:
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case s.admitted <- struct{}{}:
		return nil
	case <-timer.C:
		return fmt.Errorf("%w: too many operations run without it", ErrUnavailable)
	case <-ctx.Done():
		return errors.Join(ErrUnavailable, ctx.Err())
	}
}

// dismiss is the end of an operation that was admitted, in an outage if it came
// that far.
func (s *outages) dismiss(o *outage) {
	if o != nil {
		o.running.Add(-1)
	}
	<-s.admitted
}

// beginWithout counts an operation that runs without the lock. The first one
// opens the outage. It reports false instead if the last one has ended since so
// many were past.
func (g *Guard) beginWithout(c *call, past int64, cause error) bool {
	s := g.outages
	at := locate(g.locker.Engine(), c.key)
	s.mu.Lock()
	o, open := s.at[at.Node]
	if !open && s.past.Load() != past {
		s.mu.Unlock()
		return false
	}
	if !open {
		o = &outage{key: c.key, place: at, cause: cause}
		s.at[at.Node] = o
		s.n.Add(1)
		s.askingAt(at.Node).begun()
		s.rouse("") // whose node was not known when they asked
	}
	o.ran.Add(1) // while it is known to be open
	o.running.Add(1)
	s.mu.Unlock()
	c.without, c.outage = cause, o
	g.metrics.without.Inc()
	if open {
		return true
	}
	g.cfg.Logger.Warn("lock unavailable, only the database guards", "node", at.Node, "key", c.key, "error", cause)
	ev := o.event(g)
	ev.Outcome = notify.OutcomeUnknown
	g.trace(c.ctx, &ev)
	g.publish(c.ctx, ev)
	if g.running.enter() {
		go g.await(o)
	}
	return true
}

// await asks for the lock until it can be asked, or the Guard closes, and reports
// the end of the outage.
func (g *Guard) await(o *outage) {
	defer g.running.leave()
	s := g.outages
	ticker := time.NewTicker(askAgain)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-s.halt.Done():
			return
		}
		if g.grants(o) {
			break
		}
	}
	s.mu.Lock()
	delete(s.at, o.place.Node)
	delete(s.asking, o.place.Node)
	s.n.Add(-1)
	s.past.Add(1)
	ev := o.event(g) // as of now, whatever happens during the wait
	s.mu.Unlock()

	// Operations that run on belong to the count, but can't hold up the report
	// for ever.
	for end := time.Now().Add(g.cfg.EndTimeout); o.running.Load() > 0 && time.Now().Before(end); {
		<-ticker.C
	}
	ev.Outcome, ev.Count = o.became()
	g.cfg.Logger.Info("lock available again", "node", o.place.Node, "outcome", ev.Outcome, "operations", ev.Count)
	g.publish(s.halt, ev)
}

// became tells what is known to have become of the operations: how many were
// committed, or, if none was, how many were rolled back; none of either is no
// commit.
func (o *outage) became() (notify.Outcome, int) {
	running := o.running.Load() // first: who ends from now on is not taken for one rolled back
	committed := o.committed.Load()
	undone := o.ran.Load() - running - committed - o.unknown.Load()
	if committed == 0 && undone > 0 {
		return notify.OutcomeRolledBack, int(undone)
	}
	return notify.OutcomeCommitted, int(committed)
}

// grants reports whether the lock can be acquired again. It is given no more time
// than a caller who does not wait: what is too slow for callers would only be the
// end of one outage and the begin of another.
func (g *Guard) grants(o *outage) bool {
	ctx, cancel := context.WithTimeout(g.outages.halt, hesitation)
	defer cancel()
	err := probe(ctx, g.locker.Engine(), o.key)
	return err == nil || errors.Is(err, lock.ErrUnusable)
}

// event is the report of an outage: Outcome Unknown when it begins, later what
// became of the Count operations that ran meanwhile.
func (o *outage) event(g *Guard) notify.Event {
	ev := g.event(notify.VerdictDegraded, notify.OutcomeUnknown, o.key)
	ev.Place = place(o.place)
	return ev
}

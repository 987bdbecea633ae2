package guard

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/belaygo/belay/internal/background"
	"github.com/belaygo/belay/lock/lockengine"
	"github.com/belaygo/belay/notify"
)

// askAgain is how often the lock is asked whether it is back.
const askAgain = 500 * time.Millisecond

// hesitation is how long a Do under DBOnly that does not wait asks a lock which
// does not answer, before it goes on without. The first to meet a silent node
// would hold up its caller for as long as a failover may take; of a node that
// refuses connections the engine knows within some 30 ms. It must be longer than
// a busy machine takes to answer, or locks that are well are reported missing. Under
// both policies a caller whose Wait has ended asks for so long, and under FailClosed a
// lock that has not answered for so long at the end of the caller's deadline counts as
// unavailable.
const hesitation = 500 * time.Millisecond

// outages are the places where the lock can't be asked for now, under the policy
// DBOnly. Between the two events of an outage, its begin and its end, operations
// there do not ask for the lock at all; one goroutine does.
type outages struct {
	engine   lockengine.Engine
	reporter *reporter
	running  *running
	admitted chan struct{}   // as many as run without the lock
	halt     context.Context // ends at Close

	n      atomic.Int32 // how many there are
	past   atomic.Int64 // how many have ended
	mu     sync.Mutex
	at     map[string]*outage // by node
	asking map[string]*asking // by node
}

// asking are the calls that wait for a lock of one node.
type asking struct {
	ctx   context.Context // ends when an outage begins there
	begun context.CancelFunc
}

type outage struct {
	key       string // one that could not be locked
	place     lockengine.Place
	cause     error
	ran       atomic.Int64 // operations without the lock
	running   atomic.Int64 // that have not ended
	committed atomic.Int64 // that were committed
	unknown   atomic.Int64 // of which that could not be found out
}

func newOutages(halt context.Context, e lockengine.Engine, r *reporter, running *running) *outages {
	return &outages{
		engine: e, reporter: r, running: running, halt: halt,
		admitted: make(chan struct{}, r.cfg.DBOnlyLimit),
		at:       make(map[string]*outage),
		asking:   make(map[string]*asking),
	}
}

// on returns the outage that key falls under, or nil.
func (s *outages) on(key string) *outage {
	if s.n.Load() == 0 {
		return nil
	}
	node := locate(s.engine, key).Node
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.at[node]
}

// errBegun is the cause of a wait's end: an outage has begun.
var errBegun = errors.New("an outage has begun")

// until returns ctx for a call that waits for the lock on key: it ends, with errBegun,
// when an outage begins that key falls under. Nobody would wait for such a lock.
func (s *outages) until(ctx context.Context, key string) (context.Context, context.CancelFunc) {
	begun := s.beginning(locate(s.engine, key).Node)
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

// askingAt returns the calls that wait for a lock of node. The caller holds s.mu.
func (s *outages) askingAt(node string) *asking {
	a := s.asking[node]
	if a == nil {
		a = new(asking)
		a.ctx, a.begun = context.WithCancel(context.Background())
		s.asking[node] = a
	}
	return a
}

// rouse ends the waiting for locks of node, all the same whether there is an
// outage. The caller holds s.mu.
func (s *outages) rouse(node string) {
	if a := s.asking[node]; a != nil && s.at[node] == nil {
		a.begun()
		delete(s.asking, node)
	}
}

// admit waits until one more operation may run without the lock.
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

// readmit is the end of an operation that was admitted: another may be.
func (s *outages) readmit() { <-s.admitted }

// open returns the outage at a node that did not serve key, which the first caller opens: it
// calls begin then. nil means that the last outage has ended since so many were past: then the
// lock can be asked for again.
func (s *outages) open(key string, at lockengine.Place, past int64, cause error) (o *outage, opened bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o = s.at[at.Node]
	if o == nil && s.past.Load() != past {
		return nil, false
	}
	if opened = o == nil; opened {
		o = &outage{key: key, place: at, cause: cause}
		s.at[at.Node] = o
		s.n.Add(1)
		s.askingAt(at.Node).begun()
		s.rouse("") // whose node was not known when they asked
	}
	return o, opened
}

// join counts an operation that runs without the lock in each of its outages. It returns
// false, and counts it in none, if one of them is over.
func (s *outages) join(all []*outage) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.lastLocked(all) {
		return false
	}
	for _, o := range all {
		o.ran.Add(1)
		o.running.Add(1)
	}
	return true
}

// last reports whether none of the outages is over.
func (s *outages) last(all []*outage) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lastLocked(all)
}

func (s *outages) lastLocked(all []*outage) bool {
	over := func(o *outage) bool { return s.at[o.place.Node] != o }
	return !slices.ContainsFunc(all, over)
}

// begin reports that an outage has begun, and starts to wait for its end, even if
// somebody's code panics.
func (s *outages) begin(ctx context.Context, o *outage) {
	defer func() {
		if s.running.enter() {
			go s.await(o)
		}
	}()
	s.reporter.cfg.Logger.Warn("lock unavailable, only the database guards", "node", o.place.Node, "key", o.key, "error", o.cause)
	s.reporter.publish(ctx, s.event(ctx, o))
}

// await asks for the lock until it can be asked, or the Guard closes, and reports
// the end of the outage.
func (s *outages) await(o *outage) {
	defer s.running.leave()
	ticker := time.NewTicker(askAgain)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-s.halt.Done():
			return
		}
		if s.grants(o) {
			break
		}
	}
	s.mu.Lock()
	delete(s.at, o.place.Node)
	delete(s.asking, o.place.Node)
	s.n.Add(-1)
	s.past.Add(1)
	at := time.Now()
	s.mu.Unlock()
	ev := s.event(context.Background(), o)
	ev.CaughtAt = at // before another outage can begin there

	// Operations that run on belong to the count, but can't hold up the report
	// for ever.
	for end := time.Now().Add(s.reporter.cfg.EndTimeout); o.running.Load() > 0 && time.Now().Before(end); {
		<-ticker.C
	}
	ev.Outcome, ev.Count = o.became()
	s.reporter.cfg.Logger.Info("lock available again", "node", o.place.Node, "outcome", ev.Outcome, "operations", ev.Count)
	s.reporter.publishLater(s.halt, ev)
}

// grants reports whether the lock can be acquired again. It is given no more time
// than a caller who does not wait: what is too slow for callers would only be the
// end of one outage and the begin of another.
func (s *outages) grants(o *outage) bool {
	ctx, cancel := context.WithTimeout(s.halt, hesitation)
	defer cancel()
	err := background.Do(s.reporter.cfg.Logger, "ask whether locks are back", func() error { return probe(ctx, s.engine, o.key) })
	return err == nil || errors.Is(err, lockengine.ErrUnusable)
}

// event is the report of an outage: Outcome Unknown when it begins, later what
// became of the Count operations that ran meanwhile.
func (s *outages) event(ctx context.Context, o *outage) notify.Event {
	ev := s.reporter.event(ctx, notify.VerdictDegraded, notify.OutcomeUnknown, o.key)
	ev.Place = place(o.place)
	return ev
}

// became tells what is known to have become of the operations: how many were
// committed, or, if none was, how many were rolled back; none of either is no
// commit.
func (o *outage) became() (notify.Outcome, int) {
	running := o.running.Load() // first: an operation that ends from now on is not taken for one rolled back
	committed := o.committed.Load()
	undone := o.ran.Load() - running - committed - o.unknown.Load()
	if committed == 0 && undone > 0 {
		return notify.OutcomeRolledBack, int(undone)
	}
	return notify.OutcomeCommitted, int(committed)
}

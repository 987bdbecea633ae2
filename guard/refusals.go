package guard

import (
	"context"
	"sync"
	"time"

	"github.com/belaygo/belay/lock/lockengine"
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

// refusals are the operations that the policy FailClosed has refused because their lock
// could not be acquired. While a node's are counted, one goroutine publishes their
// number every now and then; it ends after an interval without any.
type refusals struct {
	engine   lockengine.Engine
	reporter *reporter
	running  *running
	halt     context.Context // ends at Close

	mu sync.Mutex
	at map[string]*notify.Event // by node that is counted; nil if there is nothing to publish
}

func newRefusals(halt context.Context, e lockengine.Engine, r *reporter, running *running) *refusals {
	return &refusals{engine: e, reporter: r, running: running, halt: halt, at: make(map[string]*notify.Event)}
}

// count counts a call whose lock on key could not be acquired because of err.
func (r *refusals) count(ctx context.Context, key string, err error) {
	at := locate(r.engine, key)
	node, begun := r.add(ctx, key, at)
	if !begun {
		return
	}
	r.reporter.cfg.Logger.Warn("lock unavailable, operations are refused", "node", at.Node, "key", key, "error", err)
	r.running.add() // Close waits for the last event
	go r.report(node)
}

// add counts a refusal at a place. It returns the node under whose name it is counted,
// "" if that is done together with others, and whether the counting has just begun.
func (r *refusals) add(ctx context.Context, key string, at lockengine.Place) (node string, begun bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	ev, known := r.at[at.Node]
	if !known && len(r.at) >= maxRefusing {
		at = lockengine.Place{Slot: -1} // of several nodes
		ev, known = r.at[""]
	}
	if ev != nil {
		ev.Count++
		return at.Node, false
	}
	first := r.reporter.event(ctx, notify.VerdictUnavailable, notify.OutcomeRolledBack, key)
	first.Place = place(at)
	r.at[at.Node] = &first
	return at.Node, !known
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

// report publishes how many operations are refused at a node, until an interval passes
// without any. Once Close is called, it does not wait any more.
func (r *refusals) report(node string) {
	defer r.running.leave()
	timer := time.NewTimer(firstRefusals)
	defer timer.Stop()
	for pause := moreRefusals; ; pause = min(2*pause, mostRefusals) {
		select {
		case <-timer.C:
		case <-r.halt.Done():
		}
		ev := r.take(node)
		if ev == nil {
			return
		}
		r.reporter.publishLater(r.halt, *ev)
		timer.Reset(pause)
	}
}

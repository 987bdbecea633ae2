package lock

import (
	"container/list"
	"context"
	"errors"
	"sync"

	"github.com/belaygo/belay/lock/lockengine"
)

// queues has a queue for each key that callers of this process acquire. The head of a
// queue acquires the lock from the engine, or holds it; the others wait, first in,
// first out.
type queues struct {
	mu    sync.Mutex
	byKey map[string]*queue
}

type queue struct {
	grant   *grant        // of the head, nil until it has one
	news    *news         // the engine's last answer to the queue; nil = none
	waiters *list.List    // of waiter; nil if there was none yet
	sub     *subscription // to releases of the key; nil if there is none yet
}

// news is the engine's last answer to the callers of a queue. The next head inherits it,
// and a caller whose time ends before another answer returns it.
type news struct {
	holder  lockengine.Holder // the holder in the last answer, if another had the key
	failure error             // why the last request got no answer; nil if it got one
	reached int64             // when the engine last answered the queue, or was first asked
}

// newsOf returns the news in err, the error of an attempt. The engine last answered at reached.
func newsOf(err error, reached int64) *news {
	if held, ok := errors.AsType[*lockengine.HeldError](err); ok {
		holder := held.Holder
		holder.TTL = 0 // it was right when the answer came
		return &news{holder: holder, reached: reached}
	}
	if errors.Is(err, lockengine.ErrMarked) {
		return nil
	}
	return &news{holder: nobody, failure: err, reached: reached}
}

// failed returns why the engine does not answer the queue, or nil.
func (n *news) failed() error {
	if n == nil {
		return nil
	}
	return n.failure
}

// lastHolder returns the holder in the engine's last answer, as far as it is known.
func (n *news) lastHolder() lockengine.Holder {
	if n == nil {
		return nobody
	}
	return n.holder
}

// nobody is the Holder if no holder is known.
var nobody = lockengine.Holder{Place: lockengine.Place{Slot: -1}}

// A waiter is a caller behind the head.
type waiter struct {
	admitted   chan admission
	noHandOver bool // it must call the engine itself
}

// An admission makes a caller the head of a queue.
type admission struct {
	waited bool   // whether the caller had to wait
	grant  *grant // handed over in memory, nil if the engine must be called
}

// enter waits until the caller is the head of its queue. It returns false if ctx or
// stop ends first.
func (qs *queues) enter(ctx context.Context, key string, noHandOver bool, stop <-chan struct{}) (a admission, ok bool) {
	qs.mu.Lock()
	q, busy := qs.byKey[key]
	if !busy {
		qs.byKey[key] = new(queue)
		qs.mu.Unlock()
		return admission{}, true
	}
	if q.waiters == nil {
		q.waiters = list.New()
	}
	admitted := make(chan admission, 1)
	place := q.waiters.PushBack(waiter{admitted, noHandOver})
	qs.mu.Unlock()

	select {
	case t := <-admitted:
		return t, true
	case <-ctx.Done():
	case <-stop:
	}

	qs.mu.Lock()
	defer qs.mu.Unlock()
	select {
	case t := <-admitted: // admitted just now
		return t, true
	default:
		q.waiters.Remove(place)
		return admission{}, false
	}
}

// tryEnter makes the caller the head of key's queue if there is none.
func (qs *queues) tryEnter(key string) bool {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	if _, busy := qs.byKey[key]; busy {
		return false
	}
	qs.byKey[key] = new(queue)
	return true
}

// setGrant records the grant of the head.
func (qs *queues) setGrant(key string, gr *grant) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	q := qs.byKey[key]
	q.grant, q.news = gr, nil
}

// note records the engine's answer to the head. A failure does not change when it last answered.
func (qs *queues) note(key string, n *news) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	q := qs.byKey[key]
	if n.failed() != nil && q.news != nil {
		n.reached = min(n.reached, q.news.reached)
	}
	q.news = n
}

// headOf returns the grant of the head of key's queue or, without a grant, the queue's news.
// Both are nil if there is no queue.
func (qs *queues) headOf(key string) (*grant, *news) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	q := qs.byKey[key]
	switch {
	case q == nil:
		return nil, nil
	case q.grant != nil:
		return q.grant, nil
	}
	return nil, q.news
}

// handOver makes the first waiter the head, with the grant of the head before it. It
// reports false if there is no waiter, or the first one must call the engine.
func (qs *queues) handOver(key string, gr *grant) bool {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	q := qs.byKey[key]
	if q.empty() || q.waiters.Front().Value.(waiter).noHandOver {
		return false
	}
	return q.admitNext(admission{waited: true, grant: gr})
}

// leave makes the first waiter the head, without a grant.
func (qs *queues) leave(key string) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	q := qs.byKey[key]
	q.grant = nil
	if q.admitNext(admission{waited: true}) {
		return
	}
	delete(qs.byKey, key)
	if q.sub != nil {
		q.sub.stop()
	}
}

func (q *queue) empty() bool { return q.waiters == nil || q.waiters.Len() == 0 }

func (q *queue) admitNext(t admission) bool {
	if q.empty() {
		return false
	}
	q.waiters.Remove(q.waiters.Front()).(waiter).admitted <- t
	return true
}

// A subscription notifies the head of a queue when the key may have become free.
type subscription struct {
	notified chan struct{}
	stop     func()
}

// inherited returns what the head of key's queue has of those before it: a subscription, or nil, and their
// news, or nil.
func (qs *queues) inherited(key string) (*subscription, *news) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	q := qs.byKey[key]
	return q.sub, q.news
}

func (qs *queues) setSubscription(key string, a *subscription) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	qs.byKey[key].sub = a
}

package lock

import (
	"container/list"
	"context"
	"sync"
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
	failure error         // of the head's last attempt, nil if the engine has answered one
	waiters *list.List    // of waiter; nil if nobody has waited yet
	sub     *subscription // to releases of the key; nil if nobody has subscribed yet
}

// A waiter is a caller behind the head.
type waiter struct {
	admitted   chan admission
	noHandOver bool // it must call the engine itself
}

// An admission makes a caller the head of a queue.
type admission struct {
	waited bool   // it had to wait for it
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
	case t := <-admitted: // it came while we turned away
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
	q.grant, q.failure = gr, nil
}

// setFailure records the error of the head's last attempt, nil if the engine answered.
func (qs *queues) setFailure(key string, err error) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	qs.byKey[key].failure = err
}

// headOf returns the grant of the head of key's queue. If it has none because the engine fails,
// headOf returns that error. It returns neither if there is no queue, or if the head still waits.
func (qs *queues) headOf(key string) (*grant, error) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	q := qs.byKey[key]
	switch {
	case q == nil:
		return nil, nil
	case q.grant != nil:
		return q.grant, nil
	}
	return nil, q.failure
}

// handOver makes the first waiter the head, with the grant of the head before it. It
// reports false if nobody waits, or the first waiter must call the engine.
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

func (qs *queues) subscription(key string) *subscription {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	return qs.byKey[key].sub
}

func (qs *queues) setSubscription(key string, a *subscription) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	qs.byKey[key].sub = a
}

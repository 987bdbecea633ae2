package zklock

import (
	"context"
	"sync"
)

// watches are the locks that callers wait for. There is one watch of ZooKeeper for each lock,
// however many callers wait for it.
type watches struct {
	mu     sync.Mutex
	byNode map[string]*watch
}

type watch struct {
	wakes map[int]func()
	last  int
}

// Watch implements lockengine.Waker. ZooKeeper notifies once for each watch. When it is set again, the
// answer shows whether the lock became free in between.
func (e *engine) Watch(ctx context.Context, key string, wake func()) (stop func(), err error) {
	if err := e.enter(); err != nil {
		return nil, err
	}
	defer e.running.Done()
	conn, err := e.client.ready(ctx)
	if err != nil {
		return nil, notSent("watch", err)
	}
	node := e.lockNode(key)
	stop = e.watches.add(node, wake)
	a, err := do(ctx, conn, "watch", opExists, read(node, true))
	if err == nil && a.code != 0 && a.code != errNoNode {
		err = rejected("watch", a.code)
	}
	if err != nil {
		stop()
		return nil, err
	}
	return stop, nil
}

func (ws *watches) add(node string, wake func()) (stop func()) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	w := ws.byNode[node]
	if w == nil {
		w = &watch{wakes: make(map[int]func())}
		ws.byNode[node] = w
	}
	w.last++
	id := w.last
	w.wakes[id] = wake
	return func() { ws.remove(node, w, id) }
}

func (ws *watches) remove(node string, w *watch, id int) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	delete(w.wakes, id)
	if len(w.wakes) == 0 && ws.byNode[node] == w {
		delete(ws.byNode, node)
	}
}

func (ws *watches) has(node string) bool {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	return ws.byNode[node] != nil
}

func (ws *watches) nodes() []string {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	nodes := make([]string, 0, len(ws.byNode))
	for node := range ws.byNode {
		nodes = append(nodes, node)
	}
	return nodes
}

// ring wakes all callers that wait for a lock. The functions that it calls do not block.
func (ws *watches) ring(node string) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if w := ws.byNode[node]; w != nil {
		for _, wake := range w.wakes {
			wake()
		}
	}
}

// fired sets a watch again after it has notified. The waiters are woken if the lock is free.
func (e *engine) fired(conn *conn, node string) {
	if e.watches.has(node) {
		e.arm(conn, node, false) // or the next connection sets all watches
	}
}

// arm sets a watch. It wakes the waiters if the lock is free, or if a release may have been
// missed.
func (e *engine) arm(conn *conn, node string, missed bool) {
	_ = conn.send(opExists, read(node, true), func(a answer) {
		if missed || a.lost != nil || a.code == errNoNode {
			e.watches.ring(node)
		}
	})
}

// armAll sets all watches on a new connection.
func (e *engine) armAll(conn *conn) {
	for _, node := range e.watches.nodes() {
		e.arm(conn, node, true)
	}
}

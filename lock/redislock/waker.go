package redislock

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/belaygo/belay/internal/background"
)

const (
	confirmTime = time.Second // how long Watch waits for its subscription
	checkTime   = time.Second // how often subscriptions are compared with the masters
)

func newWaker(t *topology) *waker {
	w := &waker{
		topology:   t,
		wakeup:     make(chan struct{}, 1),
		topics:     make(map[string]*topic),
		conns:      make(map[*redis.Client]*subConn),
		unassigned: make(map[*topic]struct{}),
	}
	w.ctx, w.close = context.WithCancel(context.Background())
	w.again = time.AfterFunc(time.Hour, w.wakeRun)
	return w
}

// stop ends all goroutines and connections.
func (w *waker) stop() {
	w.mu.Lock()
	w.close()
	w.mu.Unlock()
	w.again.Stop()
	w.wg.Wait()
}

// watch subscribes to the channel of a lock.
func (w *waker) watch(ctx context.Context, name string, wake func()) (stop func(), err error) {
	if w.topology.cannotSubscribe != nil {
		return nil, w.topology.cannotSubscribe
	}
	t, x, ready := w.join(name, wake)
	if t == nil {
		return nil, errClosed
	}
	leave := func() { w.unwatch(t, x) }
	timer := time.NewTimer(confirmTime)
	defer timer.Stop()
	select {
	case <-ready:
		return leave, nil
	case <-ctx.Done():
		err = fmt.Errorf("redislock: subscribe: %w", ctx.Err())
	case <-timer.C:
		err = fmt.Errorf("redislock: subscribe: no answer within %v", confirmTime)
	case <-w.ctx.Done():
		err = errClosed
	}
	leave()
	return nil, err
}

// join adds a watcher to the topic of a lock. It returns nil after stop.
func (w *waker) join(name string, wake func()) (*topic, *watcher, <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ctx.Err() != nil {
		return nil, nil, nil
	}
	if !w.running {
		w.running = true
		w.wg.Go(w.run)
	}
	t := w.topics[channel(name)]
	if t == nil {
		t = &topic{name: name, channel: channel(name), watchers: make(map[*watcher]struct{}), ready: make(chan struct{})}
		w.topics[t.channel] = t
		w.unassigned[t] = struct{}{}
		w.wakeRun()
	}
	x := &watcher{wake}
	t.watchers[x] = struct{}{}
	t.idle = false
	return t, x, t.ready
}

// run assigns topics to connections, and to another one when their lock moves.
func (w *waker) run() {
	ticker := time.NewTicker(checkTime)
	defer ticker.Stop()
	for {
		check := false
		select {
		case <-w.wakeup:
		case <-ticker.C:
			check = true
		case <-w.ctx.Done():
			return
		}
		err := background.Do(nil, "redislock: follow subscriptions", func() error { return w.look(check) })
		if err != nil {
			w.again.Reset(againTime)
		}
	}
}

// look assigns topics and, if check is set, checks all of them.
func (w *waker) look(check bool) error {
	if _, err := w.topology.node(w.ctx, ""); err != nil { // so that node does not block below
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if check {
		w.sweep()
		w.followMasters()
	}
	w.assign()
	return nil
}

// sweep drops topics that have been without a watcher for a while, and connections
// without a topic. It waits because hot locks get new watchers again and again. The
// caller holds w.mu.
func (w *waker) sweep() {
	for _, t := range w.topics {
		if len(t.watchers) > 0 {
			continue
		}
		if !t.idle {
			t.idle = true
			continue
		}
		w.detach(t)
		delete(w.unassigned, t)
		delete(w.topics, t.channel)
	}
	for _, c := range w.conns {
		if len(c.topics) == 0 {
			c.end()
		}
	}
}

// followMasters detaches topics whose lock has another master now, which go-redis does
// not do. The caller holds w.mu.
func (w *waker) followMasters() {
	for _, t := range w.topics {
		if t.conn == nil {
			continue
		}
		if node, err := w.topology.node(w.ctx, t.name); err == nil && node != t.conn.node {
			w.detach(t)
		}
	}
}

// assign gives each topic without a connection one. Subscriptions that were refused
// are tried again. The caller holds w.mu.
func (w *waker) assign() {
	for _, c := range w.conns {
		if c.refused {
			c.refused = false
			for t := range c.topics {
				if !t.confirmed {
					w.detach(t)
				}
			}
		}
	}
	for t := range w.unassigned {
		node, err := w.topology.node(w.ctx, t.name)
		if err != nil {
			w.again.Reset(againTime)
			return
		}
		c := w.conns[node]
		if c == nil {
			c = w.connect(node)
		}
		delete(w.unassigned, t)
		t.conn = c
		c.topics[t] = struct{}{}
		c.queue(subCommand{t.channel, true})
	}
}

// counts returns how many locks are watched through how many connections.
func (w *waker) counts() (topics, conns int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.topics), len(w.conns)
}

package redislock

import (
	"maps"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

// onRelease wakes all watchers of a channel.
func (w *waker) onRelease(channel string) {
	w.mu.Lock()
	watchers := w.topics[channel].list()
	w.mu.Unlock()
	wakeAll(watchers)
}

// list returns the watchers of t, which may be nil. The caller holds waker.mu.
func (t *topic) list() []*watcher {
	if t == nil {
		return nil
	}
	return slices.Collect(maps.Keys(t.watchers))
}

func wakeAll(watchers []*watcher) {
	for _, x := range watchers {
		x.wake()
	}
}

// onSubscribe notes that a subscription is confirmed. If it was confirmed before,
// messages may have been missed in between.
func (w *waker) onSubscribe(c *subConn, channel string) {
	w.mu.Lock()
	t := w.topics[channel]
	if t == nil || t.conn != c || t.confirmed {
		w.mu.Unlock()
		return
	}
	t.confirmed = true
	close(t.ready)
	var watchers []*watcher
	if t.missed {
		t.missed = false
		watchers = t.list()
	}
	w.mu.Unlock()
	wakeAll(watchers)
}

// onUnsubscribe handles the end of a subscription: we have unsubscribed, or the node
// no longer has the slot.
func (w *waker) onUnsubscribe(c *subConn, channel string) {
	w.mu.Lock()
	if n := c.leaving[channel]; n > 0 {
		if c.leaving[channel]--; n == 1 {
			delete(c.leaving, channel)
		}
		w.mu.Unlock()
		return
	}
	t := w.topics[channel]
	if t == nil || t.conn != c {
		w.mu.Unlock()
		return
	}
	delete(c.topics, t)
	w.unassign(t)
	w.again.Reset(againTime)
	w.mu.Unlock()
	w.topology.reload(w.ctx)
}

// onError handles an error reply, which does not name its subscription.
func (w *waker) onError(c *subConn, err redis.Error) {
	text := err.Error()
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case c.sharded && strings.HasPrefix(text, "ERR unknown command"):
		w.topology.before7.Store(true)
		for _, c := range w.conns {
			if c.sharded {
				c.end()
			}
		}
		return
	case strings.HasPrefix(text, "MOVED"):
		w.topology.reload(w.ctx)
		w.again.Reset(againTime)
	}
	c.refused = true
}

// onConnLost handles the end of a connection. Topics that are left need another one.
func (w *waker) onConnLost(c *subConn, connected bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c.end()
	if len(c.topics) == 0 || w.ctx.Err() != nil {
		return
	}
	w.topology.reload(w.ctx)
	for t := range c.topics {
		w.unassign(t)
	}
	c.topics = nil
	if !c.sharded {
		w.topology.before7.Store(false) // the node that comes back may be a newer one
	}
	if connected {
		w.wakeRun()
	} else {
		w.again.Reset(againTime)
	}
}

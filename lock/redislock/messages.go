package redislock

import (
	"strings"

	"github.com/redis/go-redis/v9"
)

// wake wakes all who watch a channel.
func (w *waker) wake(channel string) {
	w.mu.Lock()
	watchers := w.topics[channel].list()
	w.mu.Unlock()
	ring(watchers)
}

// list returns the watchers of t, which may be nil. The caller holds waker.mu.
func (t *topic) list() []*watcher {
	if t == nil {
		return nil
	}
	watchers := make([]*watcher, 0, len(t.watchers))
	for x := range t.watchers {
		watchers = append(watchers, x)
	}
	return watchers
}

func ring(watchers []*watcher) {
	for _, x := range watchers {
		x.wake()
	}
}

// confirm notes that a subscription stands. If it stood before, messages may
// have been missed in between.
func (w *waker) confirm(l *link, channel string) {
	w.mu.Lock()
	t := w.topics[channel]
	if t == nil || t.link != l || t.confirmed {
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
	ring(watchers)
}

// ended takes in the end of a subscription: what we asked for, or the node no
// longer has the slot.
func (w *waker) ended(l *link, channel string) {
	w.mu.Lock()
	if n := l.leaving[channel]; n > 0 {
		if l.leaving[channel]--; n == 1 {
			delete(l.leaving, channel)
		}
		w.mu.Unlock()
		return
	}
	t := w.topics[channel]
	if t == nil || t.link != l {
		w.mu.Unlock()
		return
	}
	delete(l.topics, t)
	w.unsettle(t)
	w.again.Reset(againTime)
	w.mu.Unlock()
	w.bus.reload(w.ctx)
}

// refuse takes in an error reply. Which subscription it answers it does not
// say.
func (w *waker) refuse(l *link, err redis.Error) {
	text := err.Error()
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case l.sharded && strings.HasPrefix(text, "ERR unknown command"):
		w.bus.old.Store(true)
		for _, l := range w.links {
			if l.sharded {
				l.end()
			}
		}
		return
	case strings.HasPrefix(text, "MOVED"):
		w.bus.reload(w.ctx)
		w.again.Reset(againTime)
	}
	l.refused = true
}

// lost takes in the end of a link. Topics that are left need another one.
func (w *waker) lost(l *link, connected bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	l.end()
	if len(l.topics) == 0 || w.ctx.Err() != nil {
		return
	}
	w.bus.reload(w.ctx)
	for t := range l.topics {
		w.unsettle(t)
	}
	l.topics = nil
	if !l.sharded {
		w.bus.old.Store(false) // the node that comes back may be a newer one
	}
	if connected {
		w.prod()
	} else {
		w.again.Reset(againTime)
	}
}

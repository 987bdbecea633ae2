package guard

import (
	"slices"
	"sync"
)

// queued is what a line knows of those who stand in it.
type queued interface {
	comparable
	place() *waiter
}

// lines are the callers that wait to share a transaction, by key. The zero value has none.
type lines[W queued] struct {
	mu sync.Mutex
	of map[string]*line[W]
}

// A line exists while just one of its callers leads: that one acquires the lock for all.
type line[W queued] struct{ queue []W }

// join adds w to the line of its key. It reports whether w leads.
func (l *lines[W]) join(w W) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := w.place().key
	if at := l.of[key]; at != nil {
		at.queue = append(at.queue, w)
		return false
	}
	l.begin(key)
	return true
}

// begin returns a new line. The caller holds l.mu.
func (l *lines[W]) begin(key string) *line[W] {
	if l.of == nil {
		l.of = make(map[string]*line[W])
	}
	at := new(line[W])
	l.of[key] = at
	return at
}

// quit takes w out of its line. It reports false if w's turn has come.
func (l *lines[W]) quit(w W) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := l.of[w.place().key]
	if at == nil {
		return false
	}
	i := slices.Index(at.queue, w)
	if i < 0 {
		return false
	}
	at.queue = slices.Delete(at.queue, i, i+1)
	return true
}

// take returns the next in the line who do what the leader does, at most n, and lets the
// first of the rest lead.
func (l *lines[W]) take(leader W, n int) (crew []W) {
	l.mu.Lock()
	defer l.mu.Unlock()
	key, shape := leader.place().key, leader.place().shape
	at := l.of[key]
	rest := at.queue[:0]
	for _, w := range at.queue {
		switch p := w.place(); {
		case p.gone():
		case len(crew) < n && p.shape == shape:
			crew = append(crew, w)
		default:
			rest = append(rest, w)
		}
	}
	clear(at.queue[len(rest):])
	at.queue = rest
	l.promote(key, at)
	return crew
}

// promote lets the first of a line lead, or removes an empty one. The caller holds l.mu.
func (l *lines[W]) promote(key string, at *line[W]) {
	for len(at.queue) > 0 {
		next := at.queue[0].place()
		at.queue = at.queue[1:]
		if next.use() {
			next.signal(signal{next: turnLead})
			return
		}
	}
	delete(l.of, key)
}

// giveBack puts callers whose turn did not come at the head of their line. Those who do
// not wait any longer try once more alone.
func (l *lines[W]) giveBack(key string, back []W) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var waiting []W
	for _, w := range back {
		p := w.place()
		if p.spare(); p.waits() {
			waiting = append(waiting, w)
		} else {
			p.signal(signal{next: turnAlone})
		}
	}
	if at := l.of[key]; at != nil {
		at.queue = append(waiting, at.queue...)
		return
	}
	at := l.begin(key)
	at.queue = waiting
	l.promote(key, at)
}

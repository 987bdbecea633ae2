package guard

import (
	"sync"
	"time"
)

// lines are the callers that wait to share a transaction, by key.
type lines struct {
	turnTime time.Duration // see turnTime
	folding  folding

	mu sync.Mutex
	of map[string]*line
}

// A line exists while just one of its callers leads: that one acquires the lock for all.
type line struct{ queue []*member }

// join adds m to the line of its key. It reports whether m leads.
func (l *lines) join(m *member) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if at := l.of[m.key]; at != nil {
		at.queue = append(at.queue, m)
		return false
	}
	l.of[m.key] = new(line)
	return true
}

// quit takes m out of its line. It reports false if m's turn has come.
func (l *lines) quit(m *member) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := l.of[m.key]
	if at == nil {
		return false
	}
	for i, other := range at.queue {
		if other == m {
			at.queue = append(at.queue[:i], at.queue[i+1:]...)
			return true
		}
	}
	return false
}

// take returns the next in the line who do what the leader does, at most n, and lets the
// first of the rest lead.
func (l *lines) take(leader *member, n int) (crew []*member) {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := leader.key
	at := l.of[key]
	rest := at.queue[:0]
	for _, m := range at.queue {
		switch {
		case m.gone():
		case len(crew) < n && m.shape == leader.shape:
			crew = append(crew, m)
		default:
			rest = append(rest, m)
		}
	}
	clear(at.queue[len(rest):])
	at.queue = rest
	l.promote(key, at)
	return crew
}

// promote has the first of a line lead, or removes an empty one. The caller holds l.mu.
func (l *lines) promote(key string, at *line) {
	for len(at.queue) > 0 {
		next := at.queue[0]
		at.queue = at.queue[1:]
		if next.use() {
			next.turn <- turnLead
			return
		}
	}
	delete(l.of, key)
}

// giveBack puts members whose turn did not come at the head of their line. Those who do
// not wait any longer try once more alone.
func (l *lines) giveBack(key string, members []*member) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var waiting []*member
	for _, m := range members {
		if m.spare(); m.waits() {
			waiting = append(waiting, m)
		} else {
			m.turn <- turnAlone
		}
	}
	if at := l.of[key]; at != nil {
		at.queue = append(waiting, at.queue...)
		return
	}
	at := &line{queue: waiting}
	l.of[key] = at
	l.promote(key, at)
}

package memlock

import "time"

// mark marks key as done for so long. The caller holds e.mu.
func (e *Engine) mark(key string, keep time.Duration) {
	e.marks[key] = time.Now().Add(keep)
	e.sweep()
}

// marked reports whether key is marked as done. The caller holds e.mu.
func (e *Engine) marked(key string, now time.Time) bool {
	until, ok := e.marks[key]
	if ok && !now.Before(until) {
		delete(e.marks, key)
		ok = false
	}
	return ok
}

// sweep looks at a few markers and drops those that have expired, so that there
// are never many of keys that nobody uses again. The caller holds e.mu.
func (e *Engine) sweep() {
	const few = 4
	now, seen := time.Now(), 0
	for key, until := range e.marks {
		if !now.Before(until) {
			delete(e.marks, key)
		}
		if seen++; seen == few {
			return
		}
	}
}

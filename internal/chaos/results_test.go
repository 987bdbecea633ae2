package chaos_test

import (
	"cmp"
	"strings"
)

// unreported returns how many more operations a worker refused without a lock than its
// events say. One that was killed could not report all, and may have reported calls
// whose end it could not write down.
func (h *history) unreported(worker string) int {
	n, open := -h.refused[worker], 0
	for _, c := range h.calls {
		switch {
		case c.worker != worker:
		case c.result == unavailable:
			n++
		case c.returned == 0:
			open++
		}
	}
	if h.death(worker) > 0 {
		return min(n+open, 0)
	}
	return n
}

// told is what the calls' results add up to.
func (h *history) told(key string, result string) (n int64) {
	for _, c := range h.calls {
		if c.key == key && c.result == result {
			n++
		}
	}
	return n
}

// open counts the calls on key of which nobody knows whether they were
// committed.
func (h *history) open(key string) (n int64) {
	for _, c := range h.calls {
		if c.key == key && c.wrote > 0 && (c.returned == 0 || c.result == unknown) {
			n++
		}
	}
	return n
}

// lost counts the calls whose COMMIT was lost by their worker.
func (h *history) lost() (n int) {
	for _, c := range h.calls {
		if c.lost {
			n++
		}
	}
	return n
}

// results counts the calls by how they ended.
func (h *history) results() map[string]int {
	n := make(map[string]int)
	for _, c := range h.calls {
		word, _, _ := strings.Cut(cmp.Or(c.result, "never returned"), ":")
		n[word]++
	}
	return n
}

// without returns the calls that reached their write without a lock.
func (h *history) without() (calls []*call) {
	for _, c := range h.calls {
		if c.grant == nil && c.wrote > 0 {
			calls = append(calls, c)
		}
	}
	return calls
}

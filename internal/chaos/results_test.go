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
	for _, c := range firsts(h.calls) {
		switch {
		case c.worker != worker:
		case c.result == unavailable:
			n++
		case c.returned == 0:
			open++
		}
	}
	if h.deaths[worker] > 0 {
		return min(n+open, 0)
	}
	return n
}

// told counts the calls on key that were done.
func (h *history) told(key string) (n int64) {
	for _, c := range h.byKey[key] {
		if c.result == done {
			n++
		}
	}
	return n
}

// undecided counts the calls on key that may have been committed, for all that they said.
func (h *history) undecided(key string) (n int64) {
	for _, c := range h.byKey[key] {
		if c.wrote > 0 && (c.returned == 0 || c.result == unknown) {
			n++
		}
	}
	return n
}

// losses counts the COMMITs that workers lost on purpose.
func (h *history) losses() map[commitLoss]int {
	n := make(map[commitLoss]int)
	for _, c := range firsts(h.calls) {
		if c.lost != "" {
			n[c.lost]++
		}
	}
	return n
}

// kinds counts the calls by what they do.
func (h *history) kinds() map[string]int {
	n := make(map[string]int)
	for _, c := range firsts(h.calls) {
		n[c.kind]++
	}
	return n
}

// kindsOf counts the calls by what they do, and what is no call.
func kindsOf(h *history, m sentVerdict, p paidVerdict) map[string]int {
	n := h.kinds()
	for _, times := range p.replies {
		n["payment"] += times
	}
	n["message"] = m.effects
	return n
}

// results counts the calls by how they ended.
func (h *history) results() map[string]int {
	n := make(map[string]int)
	for _, c := range firsts(h.calls) {
		word, _, _ := strings.Cut(cmp.Or(c.result, "never returned"), ":")
		n[word]++
	}
	return n
}

// together counts the attempts whose BEGIN was sent with other statements.
func (r run) together() (n int) {
	for _, rec := range r.records {
		n += rec.together
	}
	return n
}

// without returns the calls that reached their write without a lock.
func (h *history) without() (calls []*call) {
	for _, c := range firsts(h.calls) {
		if c.grant == nil && c.wrote > 0 {
			calls = append(calls, c)
		}
	}
	return calls
}

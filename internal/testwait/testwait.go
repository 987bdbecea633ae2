// Package testwait lets a test wait for a condition, and never for time.
package testwait

import (
	"fmt"
	"testing"
	"time"
)

const (
	limit = 2 * time.Minute // far beyond what a busy machine needs
	pause = 5 * time.Millisecond
)

// Until returns when cond holds, which it asks again and again. If that takes
// too long, the test ends with what has been waited for.
func Until(tb testing.TB, what string, cond func() bool) {
	tb.Helper()
	late := time.After(limit)
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for !cond() {
		select {
		case <-tick.C:
		case <-late:
			tb.Fatalf("it never happened: %s", what)
		}
	}
}

// Gone returns when nothing is left. The limit is for each step down, so that a busy machine may
// take as long as it needs.
func Gone(tb testing.TB, what string, left func() int) {
	tb.Helper()
	for n := left(); n > 0; {
		now := n
		Until(tb, fmt.Sprintf("fewer %s than %d", what, n), func() bool { now = left(); return now < n })
		n = now
	}
}

// Package testwait lets a test wait for a condition, and never for time.
package testwait

import (
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

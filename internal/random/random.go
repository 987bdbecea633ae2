// Package random is where code that the simulation runs gets its random numbers from:
// delays between attempts, and stamps.
package random

import (
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// A Source returns a number that is at least 0 and less than n.
type Source func(n int64) int64

var source atomic.Pointer[Source]

// Use makes s the source of all numbers; nil is that of math/rand. It is for tests that
// repeat a run by its seed.
func Use(s Source) {
	if s == nil {
		source.Store(nil)
		return
	}
	source.Store(&s)
}

// Int64N returns a random number that is at least 0 and less than n, which is positive.
func Int64N(n int64) int64 {
	if s := source.Load(); s != nil {
		return (*s)(n)
	}
	return rand.Int64N(n)
}

// Duration returns a random duration that is at least 0 and less than d, which is positive.
func Duration(d time.Duration) time.Duration { return time.Duration(Int64N(int64(d))) }

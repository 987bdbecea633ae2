package wait

import (
	"math/rand/v2"
	"time"
)

// A Backoff spaces out attempts that fail: the bound of the delay starts at Min and
// doubles with each attempt, up to Max. It is not safe for concurrent use.
type Backoff struct {
	Min, Max time.Duration
	bound    time.Duration
}

// Next returns the delay before the next attempt, with full jitter: anything from
// zero to the bound. So processes that fail together do not retry together.
func (b *Backoff) Next() time.Duration { return rand.N(b.Step() + 1) }

// Step returns the bound itself, for a single caller whose retries hit nobody.
func (b *Backoff) Step() time.Duration {
	switch {
	case b.bound == 0:
		b.bound = min(b.Min, b.Max)
	case b.bound > b.Max/2:
		b.bound = b.Max
	default:
		b.bound *= 2
	}
	return b.bound
}

// Reset starts again at Min. Callers reset after a success.
func (b *Backoff) Reset() { b.bound = 0 }

// After returns the delay that Next returns after so many failures before this one.
// It is for callers that keep the count elsewhere.
func After(failures int, shortest, longest time.Duration) time.Duration {
	bound := longest
	if failures = max(failures, 0); failures < 32 && shortest<<failures < longest {
		bound = shortest << failures
	}
	return rand.N(bound + 1)
}

// Between returns a random delay, at least from and less than to.
func Between(from, to time.Duration) time.Duration { return from + rand.N(to-from) }

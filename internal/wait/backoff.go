package wait

import (
	"time"

	"github.com/belaygo/belay/internal/random"
)

// A Backoff spaces out attempts that fail: the bound of the delay starts at Min and
// doubles with each attempt, up to Max. It is not safe for concurrent use.
type Backoff struct {
	Min, Max time.Duration
	failures int
}

// Next returns the delay before the next attempt, with full jitter: anything from
// zero to the bound. So processes that fail together do not retry together.
func (b *Backoff) Next() time.Duration {
	b.failures++
	return After(b.failures-1, b.Min, b.Max)
}

// Reset starts again at Min. Callers reset after a success.
func (b *Backoff) Reset() { b.failures = 0 }

// After returns the delay that Next returns after so many failures before this one.
// It is for callers that keep the count elsewhere.
func After(failures int, shortest, longest time.Duration) time.Duration {
	bound := longest
	if failures = max(failures, 0); shortest <= longest>>failures {
		bound = shortest << failures
	}
	return random.Duration(bound + 1)
}

// Between returns a random delay, at least from and less than to.
func Between(from, to time.Duration) time.Duration { return from + random.Duration(to-from) }

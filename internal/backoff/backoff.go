// Package backoff spaces out attempts that fail.
package backoff

import (
	"context"
	"math/rand/v2"
	"time"
)

// A Backoff is exponential with full jitter: the n-th delay is anything
// between zero and Min doubled n times, at most Max. Full jitter keeps many
// processes that failed together from trying again together. It is not safe
// for concurrent use.
type Backoff struct {
	Min, Max time.Duration
	bound    time.Duration
}

// Next returns how long to wait before the next attempt.
func (b *Backoff) Next() time.Duration {
	switch {
	case b.bound == 0:
		b.bound = min(b.Min, b.Max)
	case b.bound > b.Max/2:
		b.bound = b.Max
	default:
		b.bound *= 2
	}
	return rand.N(b.bound + 1)
}

// After returns the delay after so many failures before this one, where the
// count is kept elsewhere.
func After(failures int, shortest, longest time.Duration) time.Duration {
	bound := longest
	if failures = max(failures, 0); failures < 32 && shortest<<failures < longest {
		bound = shortest << failures
	}
	return rand.N(bound + 1)
}

// Reset starts anew, after a success.
func (b *Backoff) Reset() { b.bound = 0 }

// Sleep waits for d, or until ctx ends or wake sends or is closed. It reports whether
// it has waited for d. A nil wake never wakes it.
func Sleep(ctx context.Context, d time.Duration, wake <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-wake:
	case <-ctx.Done():
	}
	return false
}

// Package elapsed measures how much time has passed where less than the truth could let something
// happen twice: a call of a payment's provider after it has forgotten the id, or behind a lease that
// another process has by now. A context of WithTimeout ends such a call when it goes on.
//
// Go compares times by the monotonic clock, which stands while the host is suspended. The wall clock
// goes on, but may be set. Since returns the larger of what the two say:
//
//	meanwhile                            | monotonic | wall      | larger
//	nothing                              | right     | right     | right
//	the host was suspended               | too short | right     | right
//	the wall clock was set forward       | right     | too long  | too long: the caller is late early
//	the wall clock was set back          | right     | too short | right
//	both: suspended, and set back        | too short | too short | too short, by the smaller of the two
//	a hypervisor has stopped both clocks | too short | too short | too short, until the wall clock is set
//
// Too long is safe: a request stays pending and is repeated, a lane is renewed before it is used again,
// and a message is read again, with its age by the database's clock, before it is a dead letter. The
// last two rows are not covered, so a virtual machine has to get the right time when it goes on.
// Leases are granted, taken over and ended by the database's clock alone.
package elapsed

import (
	"sync/atomic"
	"time"
)

// A Clock measures time. The zero Clock is ready for use, by several goroutines.
type Clock struct {
	step atomic.Int64 // by how much a test has moved the wall clock
}

// Since returns how much time has passed since t, which is a result of time.Now.
func (c *Clock) Since(t time.Time) time.Duration { return since(t, c.step.Load()) }

func since(t time.Time, step int64) time.Duration {
	now := time.Now()
	wall := now.Round(0).Sub(t.Round(0)) + time.Duration(step)
	return max(now.Sub(t), wall)
}

// Step moves the wall clock by d against the monotonic one, in a test: forward, as while the host is
// suspended, or back. It counts until it is moved back.
func (c *Clock) Step(d time.Duration) { c.step.Add(int64(d)) }

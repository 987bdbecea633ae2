// Package ability has what some engines can do for another one that is made of them.
package ability

import (
	"context"
	"time"

	"github.com/belaygo/belay/lock/lockengine"
)

// A Starter is an engine that knows when its server started. A server that was started again has
// forgotten the locks that it granted, so its votes must not count for a while. An implementation
// must be safe for concurrent use.
type Starter interface {
	// Started returns when the server started, or some time later, by the clock of this
	// process. After a call of the engine has been answered, the time is that of the server
	// that answered, or of one that started later. A server that follows another one has not
	// started before that one answered, whatever its clock says. The time is zero until a
	// server has answered. Started does not block. It returns an error if the engine can't know the time.
	Started() (time.Time, error)
}

// A Limiter is an engine that bounds its acquires itself, so that nobody else has to.
type Limiter interface {
	// Limit returns how long Acquire takes at most, whatever its context. Then it returns an
	// error that does not match context.DeadlineExceeded, unless its context has ended.
	Limit() time.Duration
}

// An Adopter is an engine that can acquire many locks by one request. Engines need not implement
// it: at a switch, held locks are then acquired in the new engine by one request each, 64 at a
// time. An Adopter takes fewer requests, so more locks are in the new engine before they expire.
type Adopter interface {
	// Adopt acquires each lock for its owner, as Acquire does. It returns one error for each
	// request, in order: nil if the owner has the lock.
	Adopt(ctx context.Context, rs []lockengine.Request, ttl time.Duration) []error
}

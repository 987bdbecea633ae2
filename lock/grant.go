package lock

import (
	"context"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"github.com/belaygo/belay/lock/lockengine"
)

// A grant is a lock that the engine gave, from its acquire to its release.
// Callers of this process may have it one after the other: it is handed over in
// memory. Times are nanoseconds since the Locker was made, to keep it small.
type grant struct {
	key      string
	owner    string // empty if the engine does not know of the grant
	place    lockengine.Place
	token    int64        // of the first holder
	granted  int64        // when the engine's answer came
	deadline atomic.Int64 // until when it can be relied on

	// Guarded by Locker.mu.
	cancel            context.CancelCauseFunc // ends the context of the present holder
	due               int64                   // of the next renewal; never while one is on its way
	limit             int64                   // of the present holder
	index             int                     // in Locker.grants
	leases            int32                   // of the present holder: 1 and the nested ones
	generation        int16                   // hand-overs so far
	state             state
	renewalFailed     bool   // a renewal has failed: it is not handed over any more
	lastRenewalFailed bool   // the last renewal has failed
	noHandOver        bool   // it is never handed over in memory; not guarded, as it does not change
	cause             error  // of a loss while it was handed over
	suspected         int64  // when the engine last reported a possible loss; 0 = not since a renewal
	stopWatch         func() // of its loss; nil = not watched
}

// never is a time that does not come.
const never = math.MaxInt64

type state int8

const (
	stateHeld       state = iota
	stateHandedOver       // handed over to a caller that has not taken it yet
	stateAbandoned        // not renewed, but no other caller of this Locker gets the key yet
	stateLost             // lost; the holder has not released it yet
	stateEnded            // released, or abandoned and past its deadline
)

// request returns the fields of requests about the grant.
func (g *grant) request() lockengine.Request { return lockengine.Request{Key: g.key, Owner: g.owner} }

// isRenewed reports whether the watchdog renews the grant. The caller holds Locker.mu.
func (g *grant) isRenewed() bool { return g.state == stateHeld || g.state == stateHandedOver }

// isLocal reports whether the engine does not know of the grant.
func (g *grant) isLocal() bool { return g.owner == "" }

// renewed notes a successful request that was sent at the given time.
func (g *grant) renewed(sent int64, cfg *Config) {
	g.deadline.Store(sent + int64(cfg.TTL-cfg.margin()))
	g.due = sent + int64(cfg.TTL/3)
}

// lossError is ErrLost, or another cause that matches it, with the circumstances.
func (g *grant) lossError(cause error, reason string) error {
	if g.place.Node == "" {
		return fmt.Errorf("%w: %q: %s", cause, g.key, reason)
	}
	return fmt.Errorf("%w: %q on %s: %s", cause, g.key, g.place.Node, reason)
}

// expired is the loss of a grant that was not renewed in time. The caller holds
// Locker.mu.
func (g *grant) expired() error {
	cause := errExpired
	if g.lastRenewalFailed {
		cause = errUnrenewed
	}
	return g.lossError(cause, "its time is up")
}

// holder returns the holder of a grant, which may be nil, as far as it is known.
func (g *grant) holder(now int64) lockengine.Holder {
	if g == nil || g.isLocal() {
		return nobody
	}
	left := time.Duration(g.deadline.Load() - now)
	return lockengine.Holder{Owner: g.owner, TTL: max(0, left), Place: g.place}
}

// mayHandOver reports whether the grant may be handed over in memory: always once,
// and again for a short while, so that other processes get the lock, too.
func (g *grant) mayHandOver(now int64, cfg *Config) bool {
	window := int64(cfg.HandOver)
	return window > 0 && !g.noHandOver && !g.renewalFailed && g.generation < maxHandOvers && now < g.deadline.Load() &&
		(g.generation == 0 || now-g.granted < window)
}

// maxHandOvers is how many tokens there are between two of the engine's.
const maxHandOvers = 1023

// next is when the watchdog must look at the grant: to renew it, or to end it.
func (g *grant) next() int64 { return min(g.deadline.Load(), g.limit, g.due) }

func (g *grant) setIndex(i int) { g.index = i }

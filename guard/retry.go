package guard

import (
	"context"
	"math/rand/v2"
	"reflect"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/notify"
)

// readyTries is how often Insert and Update are run again.
const readyTries = 3

// longestPause is how long a call may rest before its second attempt. It doubles
// with each.
const longestPause = 4 * time.Millisecond

// work is an operation that may be run again: what it changes in memory, it
// undoes when it is rolled back.
type work interface {
	do(ctx context.Context, tx *gorm.DB) error
}

// ready makes an Op of w that isReady knows again.
//
//go:noinline
func ready(w work) Op {
	return func(ctx context.Context, tx *gorm.DB) error { return w.do(ctx, tx) }
}

// readyCode is where the code of all functions is that ready returns.
var readyCode = reflect.ValueOf(ready(nil)).Pointer()

func isReady(op Op) bool { return reflect.ValueOf(op).Pointer() == readyCode }

// again reports whether to make another attempt, and rests before it.
func (c *call) again(e ending) bool {
	if !c.lostRace(e) && (e.outcome != notify.RolledBack || !dbguard.Retryable(e.err)) {
		return false
	}
	limit := c.retries
	if isReady(c.op) {
		limit = max(limit, readyTries)
	}
	if c.tries >= limit || c.lease.Err() != nil || !rest(c.ctx, rand.N(longestPause<<min(c.tries, 6))) {
		return false
	}
	c.tries++
	c.guard.metrics.retries.Inc()
	return true
}

// lostRace reports whether an attempt without the lock was refused because another
// writer changed a row after the attempt had read it.
func (c *call) lostRace(e ending) bool {
	if c.without == nil || c.brought || e.finding == nil || e.outcome != notify.Refused {
		return false
	}
	conflict, v := e.finding.endedWith(e.err)
	return v == stale && conflict.Evidence.Changed
}

// rest reports whether ctx lasted for d.
func rest(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

package redislock

import (
	"context"
	"slices"
	"time"

	"github.com/belaygo/belay/lock"
)

// Renew implements lock.Engine. The ttl is at least a millisecond.
func (e *Engine) Renew(ctx context.Context, hs []lock.Hold, ttl time.Duration) []error {
	if err := checkTTL(ttl); err != nil {
		return slices.Repeat([]error{err}, len(hs))
	}
	calls := make([]call, len(hs))
	for i, h := range hs {
		calls[i] = call{name: e.lockName(h.Key), args: []any{h.Owner, ttl.Milliseconds()}}
	}
	errs := make([]error, len(hs))
	for i, cmd := range e.runAll(ctx, renewScript, calls) {
		errs[i] = replyOf(renewScript, cmd)
		e.metrics.count(renewScript, errs[i])
	}
	return errs
}

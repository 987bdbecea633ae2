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
	cmds := make([]*command, len(hs))
	for i, h := range hs {
		cmds[i] = &command{script: renewScript, name: e.lockName(h.Key), args: []any{h.Owner, ttl.Milliseconds()}}
	}
	e.runAll(ctx, cmds)
	errs := make([]error, len(hs))
	for i, cmd := range cmds {
		errs[i] = cmd.done()
		e.metrics.count(renewScript, errs[i])
	}
	return errs
}

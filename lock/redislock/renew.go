package redislock

import (
	"context"
	"slices"
	"time"

	"github.com/belaygo/belay/internal/lasting"
	"github.com/belaygo/belay/lock/lockengine"
)

// Renew implements lockengine.Engine. The ttl is at least a millisecond.
func (e *engine) Renew(ctx context.Context, rs []lockengine.Request, ttl time.Duration) []error {
	if err := lasting.Check("redislock", ttl); err != nil {
		return slices.Repeat([]error{err}, len(rs))
	}
	cmds := make([]*command, len(rs))
	for i, r := range rs {
		cmds[i] = &command{script: renewScript, name: e.lockName(r.Key), args: arguments(r.Owner, ttl.Milliseconds())}
	}
	e.runAll(ctx, cmds)
	errs := make([]error, len(rs))
	for i, cmd := range cmds {
		errs[i] = cmd.done()
		e.metrics.count(renewScript, errs[i])
	}
	return errs
}

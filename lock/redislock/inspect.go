package redislock

import (
	"context"

	"github.com/belaygo/belay/lock/lockengine"
)

// Inspect implements lockengine.Engine. It retries as Acquire does.
func (e *engine) Inspect(ctx context.Context, key string) (holder lockengine.Holder, err error) {
	err = e.withRetry(ctx, e.lockName(key), func(ctx context.Context) error {
		holder, err = e.inspect(ctx, key)
		return err
	})
	e.metrics.count(inspectScript, err)
	return holder, err
}

func (e *engine) inspect(ctx context.Context, key string) (lockengine.Holder, error) {
	cmd := &command{script: inspectScript, name: e.lockName(key), args: arguments()}
	if err := e.run(ctx, cmd); err != nil {
		return lockengine.Holder{}, err
	}
	reply, err := cmd.Slice()
	if err != nil || len(reply) != 2 {
		return lockengine.Holder{}, cmd.badReply()
	}
	owner, _ := reply[0].(string) // nil without a holder
	ms, ok := reply[1].(int64)
	if !ok {
		return lockengine.Holder{}, cmd.badReply()
	}
	if err := cmd.foreign(owner); err != nil {
		return lockengine.Holder{}, err
	}
	return e.holderOf(cmd, owner, ms), nil
}

package redislock

import (
	"context"
	"errors"
	"time"

	"github.com/belaygo/belay/internal/lasting"
	"github.com/belaygo/belay/lock/lockengine"
)

// Acquire implements lockengine.Engine. It retries a request that was not executed for up to
// a second. The ttl is at least a millisecond.
//
// The marker is read after the acquire, on the same connection: it was set before
// the release that made way for a grant, so no grant misses it. A grant of a marked
// lock is released again.
func (e *engine) Acquire(ctx context.Context, r lockengine.Request, ttl time.Duration) (grant lockengine.Grant, err error) {
	if err := lasting.Check("redislock", ttl); err != nil {
		return lockengine.Grant{}, err
	}
	err = e.withRetry(ctx, e.lockName(r.Key), func(ctx context.Context) error {
		grant, err = e.acquire(ctx, r, ttl)
		return err
	})
	e.metrics.count(acquireScript, err)
	return grant, err
}

func (e *engine) acquire(ctx context.Context, r lockengine.Request, ttl time.Duration) (lockengine.Grant, error) {
	name := e.lockName(r.Key)
	cmd := &command{
		script: acquireScript, name: name,
		args: arguments(r.Owner, ttl.Milliseconds(), e.self, r.Waits && e.waker.listens(name)),
	}
	if r.UnlessMarked {
		cmd.marker, cmd.readMarker = e.beside("done", name), true
	}
	if r.Waits {
		cmd.line = e.lineOf(name)
	}
	var few, err error // few = too few replicas have the lock
	if e.cfg.Replicas > 0 {
		few, err = e.runReplicated(ctx, cmd)
	} else {
		err = e.run(ctx, cmd)
	}
	if err != nil {
		return lockengine.Grant{}, err
	}
	grant, err := e.granted(cmd, r.Key)
	_, held := errors.AsType[*lockengine.HeldError](err)
	if r.Waits {
		e.waker.stands(name, held && cmd.line != "")
	}
	switch {
	case err != nil && !held:
		return lockengine.Grant{}, err
	case cmd.marked() && held:
		return lockengine.Grant{}, lockengine.ErrMarked
	case cmd.marked():
		return lockengine.Grant{}, errors.Join(lockengine.ErrMarked, e.undoAcquire(ctx, r))
	case few != nil && !held:
		return lockengine.Grant{}, e.undoUnreplicated(ctx, r, few)
	}
	return grant, err
}

// granted reads the answer to an acquire.
func (e *engine) granted(cmd *command, key string) (lockengine.Grant, error) {
	reply, err := cmd.Slice()
	if err != nil || len(reply) != 3 {
		return lockengine.Grant{}, cmd.badReply()
	}
	if reply[0] == int64(0) {
		owner, okOwner := reply[1].(string)
		ms, okMS := reply[2].(int64)
		switch {
		case !okOwner || !okMS:
			return lockengine.Grant{}, cmd.badReply()
		}
		if err := cmd.foreign(owner); err != nil {
			return lockengine.Grant{}, err
		}
		return lockengine.Grant{}, &lockengine.HeldError{Key: key, Holder: e.holderOf(cmd, owner, ms)}
	}
	sec, okSec := reply[1].(int64)
	usec, okUsec := reply[2].(int64)
	if reply[0] != int64(1) || !okSec || !okUsec {
		return lockengine.Grant{}, cmd.badReply()
	}
	return lockengine.Grant{Token: (sec*1e6 + usec) * 1024, Place: e.place(cmd.name, cmd.node)}, nil
}

package redislock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/belaygo/belay/lock"
)

// How long Acquire and Inspect go on asking when nothing was executed, and how
// often.
const (
	persistTime           = time.Second
	shortPause, longPause = 10 * time.Millisecond, 100 * time.Millisecond
)

// requestTime bounds Acquire and Inspect in all, whatever the timeouts of a client
// that was passed to New: its dials alone may go on for 25 s.
const requestTime = 5 * time.Second

// persist asks again for up to a second while Redis can't be reached or refuses
// to execute anything, as it does for moments of a failover. That a node does not
// answer is the last word only if the lock is still there.
func (e *Engine) persist(ctx context.Context, name string, ask func(context.Context) error) error {
	bounded, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	err := e.askAgain(bounded, name, ask)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil && bounded.Err() != nil {
		return &limitError{err}
	}
	return err
}

// A limitError is what was met at the end of requestTime. It does not match the end
// of the caller's context.
type limitError struct{ err error }

func (e *limitError) Error() string { return e.err.Error() }

func (e *limitError) Is(target error) bool {
	return target != context.DeadlineExceeded && errors.Is(e.err, target)
}

func (e *Engine) askAgain(ctx context.Context, name string, ask func(context.Context) error) error {
	until := time.Now().Add(persistTime)
	looked := false
	for pause := shortPause; ; pause = min(2*pause, longPause) {
		err := ask(ctx)
		if silent, ok := errors.AsType[*silentNodeError](err); ok && !looked {
			looked = true
			if e.bus.refresh(ctx); e.node(name) != silent.addr {
				continue
			}
		}
		if err == nil || !refused(err) || time.Now().Add(pause).After(until) || !rest(ctx, pause) {
			return err
		}
	}
}

// checkTTL refuses what Redis would take for no time at all: PEXPIRE 0 deletes.
func checkTTL(ttl time.Duration) error {
	if ttl < time.Millisecond {
		return fmt.Errorf("redislock: ttl %v is below a millisecond", ttl)
	}
	return nil
}

// Acquire implements lock.Engine. It persists. The ttl is at least a millisecond.
func (e *Engine) Acquire(ctx context.Context, h lock.Hold, ttl time.Duration) (lock.Grant, error) {
	return e.persistAcquire(ctx, h, ttl, false)
}

func (e *Engine) persistAcquire(ctx context.Context, h lock.Hold, ttl time.Duration, look bool) (grant lock.Grant, err error) {
	if err := checkTTL(ttl); err != nil {
		return lock.Grant{}, err
	}
	err = e.persist(ctx, e.lockName(h.Key), func(ctx context.Context) error {
		grant, err = e.acquire(ctx, h, ttl, look)
		return err
	})
	e.metrics.count(acquire, err)
	return grant, err
}

// rest reports whether ctx lasted for d.
func rest(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

func (e *Engine) acquire(ctx context.Context, h lock.Hold, ttl time.Duration, look bool) (lock.Grant, error) {
	c := call{name: e.lockName(h.Key), args: []any{h.Owner, ttl.Milliseconds()}, look: look}
	cmd, few, err := e.runReplicated(ctx, acquire, c)
	if err != nil {
		return lock.Grant{}, err
	}
	grant, err := e.granted(cmd, h.Key)
	_, held := errors.AsType[*lock.HeldError](err)
	switch {
	case err != nil && !held:
		return lock.Grant{}, err
	case cmd.marked() && held:
		return lock.Grant{}, lock.ErrMarked
	case cmd.marked():
		return lock.Grant{}, errors.Join(lock.ErrMarked, e.undo(ctx, h))
	case few != nil && !held:
		return lock.Grant{}, e.withdraw(ctx, h, few)
	}
	return grant, err
}

// granted reads the answer to an acquire.
func (e *Engine) granted(cmd *command, key string) (lock.Grant, error) {
	reply, err := cmd.Slice()
	if err != nil || len(reply) != 3 {
		return lock.Grant{}, badReply(acquire, cmd)
	}
	if reply[0] == int64(0) {
		owner, okOwner := reply[1].(string)
		ms, okMS := reply[2].(int64)
		if !okOwner || !okMS {
			return lock.Grant{}, badReply(acquire, cmd)
		}
		return lock.Grant{}, &lock.HeldError{Key: key, Holder: e.holder(cmd, owner, ms)}
	}
	sec, okSec := reply[1].(int64)
	usec, okUsec := reply[2].(int64)
	if reply[0] != int64(1) || !okSec || !okUsec {
		return lock.Grant{}, badReply(acquire, cmd)
	}
	return lock.Grant{Token: (sec*1e6 + usec) * 1024, Place: e.place(cmd.name, cmd.node)}, nil
}

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
	for i, cmd := range e.runAll(ctx, renew, calls) {
		errs[i] = verdict(renew, cmd)
		e.metrics.count(renew, errs[i])
	}
	return errs
}

// Release implements lock.Engine.
func (e *Engine) Release(ctx context.Context, h lock.Hold) error {
	err := e.release(ctx, h, 0)
	e.metrics.count(release, err)
	return err
}

func (e *Engine) release(ctx context.Context, h lock.Hold, mark time.Duration) error {
	name := e.lockName(h.Key)
	c := call{name: name, args: []any{h.Owner, channel(name), e.bus.publish()}, mark: mark}
	cmd, err := e.run(ctx, release, c)
	if err != nil {
		return err
	}
	return verdict(release, cmd)
}

// Inspect implements lock.Engine. It persists.
func (e *Engine) Inspect(ctx context.Context, key string) (holder lock.Holder, err error) {
	err = e.persist(ctx, e.lockName(key), func(ctx context.Context) error {
		holder, err = e.inspect(ctx, key)
		return err
	})
	e.metrics.count(inspect, err)
	return holder, err
}

func (e *Engine) inspect(ctx context.Context, key string) (lock.Holder, error) {
	cmd, err := e.run(ctx, inspect, call{name: e.lockName(key)})
	if err != nil {
		return lock.Holder{}, err
	}
	reply, err := cmd.Slice()
	if err != nil || len(reply) != 2 {
		return lock.Holder{}, badReply(inspect, cmd)
	}
	owner, _ := reply[0].(string) // nil when nobody holds it
	ms, ok := reply[1].(int64)
	if !ok {
		return lock.Holder{}, badReply(inspect, cmd)
	}
	return e.holder(cmd, owner, ms), nil
}

// verdict reads the reply of a script that returns 1 for done and 0 for not
// held.
func verdict(s *script, cmd *command) error {
	if err := cmd.Err(); err != nil {
		return s.failed(err)
	}
	switch cmd.Val() {
	case int64(1):
		return nil
	case int64(0):
		return lock.ErrNotHeld
	}
	return badReply(s, cmd)
}

func badReply(s *script, cmd *command) error {
	return fmt.Errorf("redislock: unexpected reply %v to %s", cmd.Val(), s.name)
}

// channel is where Redisson clients listen for the release of a lock.
func channel(name string) string { return "redisson_lock__channel:{" + name + "}" }

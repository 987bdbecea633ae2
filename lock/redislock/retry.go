package redislock

import (
	"context"
	"errors"
	"time"

	"github.com/belaygo/belay/internal/wait"
	"github.com/belaygo/belay/lock/internal/ability"
)

// How long Acquire and Inspect retry requests that were not executed, and how often.
const (
	retryTime             = time.Second
	shortPause, longPause = 10 * time.Millisecond, 100 * time.Millisecond
)

// requestTime bounds Acquire and Inspect, whatever the timeouts of a client that was
// passed to New: its dials alone may take 25 s.
const requestTime = 5 * time.Second

var _ ability.Limiter = (*engine)(nil)

// Limit implements ability.Limiter.
func (*engine) Limit() time.Duration { return requestTime }

// withRetry makes attempts for up to a second while Redis cannot be reached or rejects
// requests unexecuted, as it does during a failover. A node that does not answer fails
// the request only if the lock is still there.
func (e *engine) withRetry(ctx context.Context, name string, attempt func(context.Context) error) error {
	bounded, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	err := e.retry(bounded, name, attempt)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil && bounded.Err() != nil {
		return &limitError{err}
	}
	return err
}

func (e *engine) retry(ctx context.Context, name string, attempt func(context.Context) error) error {
	until := time.Now().Add(retryTime)
	refreshed := false
	for pause := shortPause; ; {
		err := attempt(ctx)
		if silent, ok := errors.AsType[*silentNodeError](err); ok && !refreshed {
			refreshed = true
			if e.topology.refresh(ctx); e.topology.known(name) != silent.addr {
				continue
			}
		}
		if err == nil || !refused(err) {
			return err
		}
		if time.Now().Add(pause).After(until) || wait.Sleep(ctx, pause, nil) != nil {
			return err
		}
		pause = min(2*pause, longPause)
	}
}

// A limitError is the last error before requestTime ended. It does not match the end of
// the caller's context.
type limitError struct{ err error }

func (e *limitError) Error() string { return e.err.Error() }

func (e *limitError) Is(target error) bool {
	return target != context.DeadlineExceeded && errors.Is(e.err, target)
}

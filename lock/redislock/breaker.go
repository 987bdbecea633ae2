package redislock

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/sony/gobreaker/v2"

	"github.com/belaygo/belay/lock/lockengine"
)

const (
	tripAfter = 5                      // failures in a row, not all of them at once
	goneAfter = 3                      // refused connections in a row: no process listens there
	openTime  = 500 * time.Millisecond // until a request tries again whether the node is back
	// A caller that gives up sooner proves nothing about the node.
	minPatience = 300 * time.Millisecond
)

// epoch is the zero of the breaker's times, by the monotonic clock.
var epoch = time.Now()

// A breaker keeps requests away from a node that does not answer, so that they fail at
// once instead of after a timeout. Any answer counts, even an error.
type breaker struct {
	addr   func() string
	reload func(context.Context)
	cb     *gobreaker.CircuitBreaker[struct{}]
	gone   atomic.Int32 // refused connections in a row
	first  atomic.Int64 // when the first failure in a row ended, in ns since epoch; 0 = none
	again  atomic.Bool  // a request that began after the first failure has failed, too
}

func newBreaker(addr func() string, reload func(context.Context)) *breaker {
	b := &breaker{addr: addr, reload: reload}
	b.cb = gobreaker.NewCircuitBreaker[struct{}](gobreaker.Settings{
		Timeout: openTime,
		ReadyToTrip: func(c gobreaker.Counts) bool {
			return c.ConsecutiveFailures >= tripAfter && b.again.Load() || b.gone.Load() >= goneAfter
		},
		IsExcluded: func(err error) bool { return errors.Is(err, errUndecided) },
	})
	return b
}

// run runs request, which began at start, unless the node is not answering.
func (b *breaker) run(ctx context.Context, start time.Time, request func() error) error {
	var err error
	_, fault := b.cb.Execute(func() (struct{}, error) {
		err = request()
		fault := nodeFault(err, start)
		b.note(err, fault, start)
		return struct{}{}, fault
	})
	switch {
	case errors.Is(fault, gobreaker.ErrOpenState), errors.Is(fault, gobreaker.ErrTooManyRequests):
		b.reload(ctx)
		return fmt.Errorf("%w: %w", lockengine.ErrNotSent, &silentNodeError{b.addr()})
	case fault != nil:
		b.reload(ctx)
	}
	return err
}

// note counts a request. Requests on their way while a healthy node pauses once fail
// together, and count as one failure.
func (b *breaker) note(err, fault error, start time.Time) {
	if errors.Is(err, syscall.ECONNREFUSED) {
		b.gone.Add(1)
	} else {
		b.gone.Store(0)
	}
	first, silent := b.first.Load(), errors.Is(fault, errSilent)
	switch {
	case fault == nil && first != 0:
		b.first.Store(0)
		b.again.Store(false)
	case silent && first == 0:
		b.first.CompareAndSwap(0, int64(time.Since(epoch)))
	case silent && int64(start.Sub(epoch)) > first:
		b.again.Store(true)
	}
}

// nodeFault returns the node's fault, as shown by the end of a request: nil if the node
// has answered.
func nodeFault(err error, start time.Time) error {
	if err == nil {
		return nil
	}
	if _, answered := errors.AsType[redis.Error](err); answered {
		return nil
	}
	network, ok := errors.AsType[net.Error](err) // context.DeadlineExceeded is one, too
	gone := errors.Is(err, context.Canceled) || ok && network.Timeout()
	switch {
	case gone && time.Since(start) < minPatience:
		return errUndecided
	case gone, undialled(err):
		return errSilent
	}
	return errUndecided
}

// open returns 1 unless the node is taken to answer.
func (b *breaker) open() float64 {
	if b.cb.State() == gobreaker.StateClosed {
		return 0
	}
	return 1
}

package rabbitmq

import (
	"context"
	"errors"
	"time"

	"github.com/sony/gobreaker/v2"
)

// The circuit breaker around publish and confirm: after so many failures in a
// row Publish fails at once, so that whoever has no time to lose (a caller whose
// database is away) does not spend it on a broker that does not answer. Events
// stay in the outbox meanwhile.
const (
	breakerFailures = 5
	breakerTimeout  = time.Second // then one publish tries again
)

func newBreaker() *gobreaker.CircuitBreaker[struct{}] {
	return gobreaker.NewCircuitBreaker[struct{}](gobreaker.Settings{
		Timeout:     breakerTimeout,
		ReadyToTrip: func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= breakerFailures },
		// A broker that says no is well.
		IsSuccessful: func(err error) bool {
			return err == nil || errors.Is(err, ErrUnroutable) || errors.Is(err, errRefused)
		},
		IsExcluded: func(err error) bool {
			return errors.Is(err, context.Canceled) || errors.Is(err, errClosed)
		},
	})
}

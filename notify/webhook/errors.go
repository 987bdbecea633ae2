package webhook

import (
	"errors"
	"fmt"
	"time"

	"github.com/belaygo/belay/notify"
)

var (
	// errClosed is returned after Close.
	errClosed = errors.New("webhook: closed")
	// errOpen is returned when the last publishes failed, for a second at a time: the
	// circuit breaker is open, and this event was not sent.
	errOpen = errors.New("webhook: circuit breaker is open")
	// errAnswered is matched when the address answered, and did not take the event.
	errAnswered = errors.New("webhook: not taken")
	// errUnauthorized is matched when the monitor does not know the token, or it is not
	// for this service.
	errUnauthorized = fmt.Errorf("%w: refused", errAnswered)
	// errForbidden is matched when the token is not for this service, but may be for others.
	errForbidden = fmt.Errorf("%w (%w)", errUnauthorized, notify.ErrRefused)
	// errTooLarge is matched when a proxy rejects the event because it is too large.
	errTooLarge = fmt.Errorf("%w: too large (%w)", errAnswered, notify.ErrRefused)
	// errRejected is matched when the monitor will never take the event.
	errRejected = fmt.Errorf("%w: the monitor rejects it (%w)", errAnswered, notify.ErrInvalidEvent)
)

// A busyError reports that the monitor is overloaded, or cannot store.
type busyError struct {
	error
	after time.Duration // 0 if the answer has none
}

func (e *busyError) Unwrap() error { return e.error }

// RetryAfter is how long the monitor is to be left alone.
func (e *busyError) RetryAfter() time.Duration { return e.after }

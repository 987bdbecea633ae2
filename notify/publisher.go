package notify

import (
	"context"
	"errors"
)

// ErrRefused is matched by an error of Publish when the destination has refused this event but
// may accept others: the sender is not allowed to send it, or it is too large. An outbox retries
// the event after 30 seconds to 10 minutes, and publishes the others meanwhile.
var ErrRefused = errors.New("notify: event refused")

// A Publisher takes events. Publish returns nil once the event is safe: stored,
// confirmed by a broker, or logged, depending on the implementation. It is safe for
// concurrent use and never changes the event's ID.
type Publisher interface {
	Publish(ctx context.Context, ev Event) error
}

// PublisherFunc is a function as a Publisher.
type PublisherFunc func(ctx context.Context, ev Event) error

// Publish calls f.
func (f PublisherFunc) Publish(ctx context.Context, ev Event) error { return f(ctx, ev) }

// A RawPublisher takes events as the JSON that MarshalJSON of this or another version
// has written, and forwards every byte, including members that this version does not
// know. PublishRaw returns nil when Publish would, and an error that matches
// ErrInvalidEvent if body is not an event. It is safe for concurrent use.
type RawPublisher interface {
	PublishRaw(ctx context.Context, body []byte) error
}

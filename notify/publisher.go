package notify

import "context"

// A Publisher takes events. Publish returns nil once the event is safe in its
// hands: stored, confirmed by a broker, or logged, as the implementation says.
// It is safe for concurrent use and keeps the event's ID.
type Publisher interface {
	Publish(ctx context.Context, ev Event) error
}

// PublisherFunc lets a function be a Publisher.
type PublisherFunc func(ctx context.Context, ev Event) error

// Publish calls f.
func (f PublisherFunc) Publish(ctx context.Context, ev Event) error { return f(ctx, ev) }

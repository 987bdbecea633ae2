package relay

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Others is the Topic of the route for all topics without a route of their own.
const Others = "*"

// A Message is what an operation has sent.
type Message struct {
	// ID is the message's id. It is equal for each delivery and different for each message:
	// give it to other services as the id of their request.
	ID string
	// Key orders messages. It is empty if the message has no order.
	Key string
	// Topic is what the message is about.
	Topic string
	// Headers go with the body.
	Headers map[string]string
	// Body is the message's content.
	Body []byte
	// Time is when the message was stored, by the database's clock, to the millisecond.
	Time time.Time
	// Attempts is how often the message was tried and not accepted. Tries that did not reach
	// the destination, or that a crash has cut short, do not count.
	Attempts int
}

// A Publisher takes messages to a broker. It must return nil only when the message is safe there,
// and must return when ctx ends. It is called by several goroutines at once.
//
// After an error that matches ErrUnavailable, nothing is sent to the publisher for a moment; if only
// one message meets such errors, and others are accepted in between, it counts as not accepted. An
// error that matches ErrRejected makes the message a dead letter. After any other error the
// message is tried again, and the others of its key wait.
type Publisher interface {
	Publish(ctx context.Context, m Message) error
}

// A Route is a way out for the messages of a topic. It has either To or Handle.
type Route struct {
	// Topic is the topic of the messages, or Others.
	Topic string
	// To takes the messages to a broker.
	To Publisher
	// Handle is called for each message, outside of any transaction, until it returns nil. It
	// may be called again after it has returned nil, if the process dies, so it gives the ID
	// of the message to the service that it calls. Its errors are those of a Publisher. They are
	// logged, and kept in belay_parked: leave secrets out, such as the URL in an error of
	// net/http. A panic is an error.
	Handle func(ctx context.Context, m Message) error
	// Until is how long after its commit a message may be sent. Later it becomes a dead letter
	// that is never sent again, unless somebody decides it: it may or may not have taken
	// effect. Choose less than the called service remembers ids. Required with Handle;
	// defaults to 0, without end, with To.
	Until time.Duration
	// Timeout limits one try, and counts the time while the host is suspended. Defaults to 30 seconds.
	Timeout time.Duration
}

var (
	// ErrUnavailable is returned by a Publisher, or a Handle, whose destination cannot be
	// reached. The relay pauses the whole route, and no message is at fault.
	ErrUnavailable = errors.New("relay: destination is unavailable")
	// ErrRejected is returned by a Publisher, or a Handle, for a message that will never be
	// accepted. It becomes a dead letter.
	ErrRejected = errors.New("relay: message rejected")
)

// errNoRoute is the reason of a message whose topic this relay does not know.
var errNoRoute = errors.New("relay: no route for the topic")

func (r Route) send(ctx context.Context, m Message) error {
	if r.Handle != nil {
		return r.Handle(ctx, m)
	}
	return r.To.Publish(ctx, m)
}

func (r Route) validate() error {
	switch {
	case r.Topic == "":
		return errors.New("relay: a Route has no Topic")
	case (r.To == nil) == (r.Handle == nil):
		return fmt.Errorf("relay: the Route of %q needs either To or Handle", r.Topic)
	case r.Handle != nil && r.Until <= 0:
		return fmt.Errorf("relay: the Route of %q has a Handle and no Until: choose less time than the called service remembers ids", r.Topic)
	case r.Until < 0 || r.Timeout < 0:
		return fmt.Errorf("relay: Until %v or Timeout %v of the Route of %q is negative", r.Until, r.Timeout, r.Topic)
	}
	return nil
}

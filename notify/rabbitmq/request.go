package rabbitmq

import (
	"context"

	amqp "github.com/rabbitmq/amqp091-go"
)

// A request is one message on its way through the supervisor, which answers
// each request that it has taken.
type request struct {
	ctx     context.Context
	queue   string // must exist, unless it is ""
	key     string
	message amqp.Publishing
	answer  chan error // buffered
}

// A ping waits for a connection until its context ends.
type ping struct {
	ctx       context.Context
	connected chan struct{} // closed when the ping is answered
}

package rabbitmq

import (
	"errors"
	"fmt"

	"github.com/belaygo/belay/notify"
)

// ErrUnroutable is returned when the monitor's queue does not exist, or no queue is
// bound to the exchange: no monitor has declared the topology, or somebody has
// deleted the queue. A Publisher that has seen the queue missing also returns it for
// a second after it finds the queue again, unless a monitor reads the queue.
var ErrUnroutable = errors.New("rabbitmq: event is unroutable: no monitor has declared and bound the queue")

var (
	// errClosed is returned after Close.
	errClosed = errors.New("rabbitmq: closed")
	// errBlocked is returned while the broker takes no messages, for lack of memory
	// or disk.
	errBlocked = errors.New("rabbitmq: blocked by the broker")
	// errRefused is returned when the broker did not take responsibility for the
	// event: its queue is full, or cannot reach a majority.
	errRefused = errors.New("rabbitmq: refused by the broker")
	// errTooLarge is matched when the event is larger than the broker's max_message_size.
	errTooLarge = fmt.Errorf("rabbitmq: event is too large for the broker (%w)", notify.ErrRefused)
	// errOpen is returned when the last publishes failed, for a second at a time: the
	// circuit breaker is open, and this event was not sent.
	errOpen = errors.New("rabbitmq: circuit breaker is open")
)

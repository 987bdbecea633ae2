package rabbitmq

import (
	"fmt"
	"time"

	"github.com/belaygo/belay/internal/rabbit"
)

// bindingTime is how long a queue that was missing must exist before it counts as bound
// without a consumer: `guard-monitor topology` declares it and does not consume.
// Declaring and binding take one round trip each.
const bindingTime = time.Second

// errUnbound is returned while the binding of a queue that was missing may be
// missing still.
var errUnbound = fmt.Errorf("%w: %s was declared just now, and nobody reads it yet", ErrUnroutable, rabbit.Queue)

// An absence remembers that the monitor's queue was missing, across sessions. A monitor
// first declares the queue and then binds it. In between the queue exists, and an event
// goes to the exchange's other queues only.
type absence struct {
	noticed bool
	since   time.Time // when the queue was first found again, zero before
}

// ended reports whether the queue, which exists, is bound again. A consumer proves
// it, since a monitor binds before it consumes. Messages prove nothing: the default
// exchange routes them without a binding.
func (a *absence) ended(consumers int) bool {
	if a.since.IsZero() {
		a.since = time.Now()
	}
	if consumers == 0 && time.Since(a.since) < bindingTime {
		return false
	}
	*a = absence{}
	return true
}

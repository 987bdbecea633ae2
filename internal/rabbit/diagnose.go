package rabbit

import (
	"errors"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/belaygo/belay/internal/doctor"
)

// Finding says what the broker's error means: that something is missing, forbidden, or
// there in another form. It is for what follows a login: a 403 at that is one, too.
func Finding(addr string, err error) doctor.Finding {
	check := doctor.EventsBroker
	if refusal, ok := errors.AsType[*amqp.Error](err); ok {
		switch refusal.Code {
		case amqp.NotFound:
			check = doctor.EventsQueue
		case amqp.AccessRefused:
			check = doctor.EventsRights
		case amqp.PreconditionFailed:
			return doctor.EventsQueue.Failed(addr, err).Fixed("delete it, and have guard-monitor declare it: see 406 in docs/metrics.md")
		}
	}
	return check.Failed(addr, err)
}

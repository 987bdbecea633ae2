package rabbit_test

import (
	"math"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/belaygo/belay/internal/rabbit"
)

func TestMaxSize(t *testing.T) {
	t.Parallel()
	const text = "PRECONDITION_FAILED - message size 2000 is larger than configured max size"
	for _, c := range []struct {
		reason *amqp.Error
		limit  int
		is     bool
	}{
		{nil, 0, false},
		{&amqp.Error{Code: amqp.PreconditionFailed, Reason: text + " 1024"}, 1024, true},
		{&amqp.Error{Code: amqp.PreconditionFailed, Reason: text + " of one KiB"}, math.MaxInt, true},
		{&amqp.Error{Code: amqp.PreconditionFailed, Reason: "PRECONDITION_FAILED - user_id property"}, 0, false},
		{&amqp.Error{Code: amqp.NotFound, Reason: text + " 1024"}, 0, false},
	} {
		if limit, is := rabbit.MaxSize(c.reason); limit != c.limit || is != c.is {
			t.Errorf("%v: %d %v", c.reason, limit, is)
		}
	}
}

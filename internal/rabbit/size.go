package rabbit

import (
	"math"
	"strconv"
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"
)

// MaxSize reports whether the broker has closed a channel because a message was larger than the
// setting max_message_size, and returns that, in bytes. A client cannot read the setting elsewhere.
// If the reason does not name it, MaxSize returns the greatest number.
func MaxSize(reason *amqp.Error) (limit int, tooLarge bool) {
	if reason == nil || reason.Code != amqp.PreconditionFailed {
		return 0, false
	}
	_, named, found := strings.Cut(reason.Reason, "larger than configured max size")
	if !found {
		return 0, false
	}
	limit, err := strconv.Atoi(strings.TrimSpace(named))
	if err != nil {
		return math.MaxInt, true
	}
	return limit, true
}

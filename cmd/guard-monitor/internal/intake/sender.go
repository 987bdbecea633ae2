package intake

import amqp "github.com/rabbitmq/amqp091-go"

// SenderHeader is where a replayed message has its first sender: the broker lets
// nobody publish under the name of another.
const SenderHeader = "x-belay-sender"

// SentBy returns the user who sent a message, as the broker has verified, or "" if the
// message names none. SenderHeader counts in messages of own alone, the user of
// guard-monitor.
func SentBy(d *amqp.Delivery, own string) string {
	if first, ok := d.Headers[SenderHeader].(string); ok && own != "" && d.UserId == own {
		return first
	}
	return d.UserId
}

package intake

import (
	"context"
	"fmt"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/belaygo/belay/internal/rabbit"
)

// The names that only the monitor uses.
const (
	DeadExchange = "belay.dead"         // fanout, durable
	DeadQueue    = "belay.monitor.dead" // quorum; what the monitor could not take

	HeartbeatQueue = "belay.monitor.heartbeats" // quorum; the monitor reads it, too
)

const (
	// DeliveryLimit is how often the broker delivers a message again before it
	// goes to the dead letters.
	DeliveryLimit = 10
	// MaxQueueBytes bounds the queue, and the dead letters. A full queue refuses
	// events, which then stay in the outbox. What the dead letters have no room
	// for stays in the queue, and takes room there.
	MaxQueueBytes = 1 << 30
	// deadDeliveryLimit is as good as none. RabbitMQ 4 drops a message of a
	// quorum queue after 20 deliveries by default, so that who looks at the dead
	// letters often enough would lose them; -1 is refused before 4.0.
	deadDeliveryLimit = 1_000_000_000
)

// Declare declares the exchanges, queues and bindings on the broker at url. It
// changes nothing that is there already, and fails if something of the same
// name is there with other arguments. A Consumer does this by itself; publishers
// never do.
func Declare(ctx context.Context, url string) error {
	s, err := rabbit.Open(ctx, url, rabbit.Config{Name: "declare"}, declareAll)
	if err != nil {
		return fmt.Errorf("declare topology: %w", err)
	}
	s.Close()
	return nil
}

func declareAll(ch *amqp.Channel) error {
	if err := declareEvents(ch); err != nil {
		return err
	}
	return declareHeartbeats(ch)
}

// declareEvents starts with the dead letters: with at-least-once dead-lettering the
// queue must have somewhere to send them from its first message on.
func declareEvents(ch *amqp.Channel) error {
	if err := declareExchange(ch, DeadExchange, amqp.ExchangeFanout); err != nil {
		return err
	}
	if err := declareQueue(ch, DeadQueue, DeadExchange, "", amqp.Table{
		amqp.QueueTypeArg:        amqp.QueueTypeQuorum,
		"x-delivery-limit":       deadDeliveryLimit,
		amqp.QueueOverflowArg:    amqp.QueueOverflowRejectPublish, // by default it forgets the oldest
		amqp.QueueMaxLenBytesArg: MaxQueueBytes,
	}); err != nil {
		return err
	}
	if err := declareExchange(ch, rabbit.Exchange, amqp.ExchangeTopic); err != nil {
		return err
	}
	return declareQueue(ch, rabbit.Queue, rabbit.Exchange, rabbit.EventPattern, amqp.Table{
		amqp.QueueTypeArg:        amqp.QueueTypeQuorum,
		"x-delivery-limit":       DeliveryLimit,
		"x-dead-letter-exchange": DeadExchange,
		"x-dead-letter-strategy": "at-least-once",
		// Required by at-least-once: with another overflow behaviour the broker
		// silently falls back to at-most-once.
		amqp.QueueOverflowArg:    amqp.QueueOverflowRejectPublish,
		amqp.QueueMaxLenBytesArg: MaxQueueBytes,
	})
}

// declareHeartbeats declares what heartbeats need. Old ones are of no use: the
// queue forgets them.
func declareHeartbeats(ch *amqp.Channel) error {
	if err := declareExchange(ch, rabbit.Exchange, amqp.ExchangeTopic); err != nil {
		return err
	}
	return declareQueue(ch, HeartbeatQueue, rabbit.Exchange, rabbit.HeartbeatKey, amqp.Table{
		amqp.QueueTypeArg:       amqp.QueueTypeQuorum, // a classic one lives and dies with its node
		amqp.QueueMaxLenArg:     1000,
		amqp.QueueMessageTTLArg: 10 * time.Minute.Milliseconds(),
	})
}

func declareExchange(ch *amqp.Channel, name, kind string) error {
	if err := ch.ExchangeDeclare(name, kind, true, false, false, false, nil); err != nil {
		return fmt.Errorf("declare exchange %s: %w", name, err)
	}
	return nil
}

func declareQueue(ch *amqp.Channel, name, exchange, key string, args amqp.Table) error {
	if _, err := ch.QueueDeclare(name, true, false, false, false, args); err != nil {
		return fmt.Errorf("declare queue %s: %w", name, err)
	}
	if err := ch.QueueBind(name, key, exchange, false, nil); err != nil {
		return fmt.Errorf("bind queue %s: %w", name, err)
	}
	return nil
}

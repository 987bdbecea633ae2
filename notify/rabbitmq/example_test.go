package rabbitmq_test

import (
	"context"
	"log/slog"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/belaygo/belay/notify"
	"github.com/belaygo/belay/notify/rabbitmq"
)

// A publisher connects when it has something to say, so ask it at start-up
// whether it can. Its place is behind an outbox: see the example of that package.
func ExamplePublisher_Ping() {
	// amqpURL is such as amqps://user:password@rabbit-1:5671,rabbit-2:5671/
	run := func(ctx context.Context, amqpURL string) error {
		broker, err := rabbitmq.New(amqpURL, rabbitmq.Config{Name: "orders"})
		if err != nil {
			return err
		}
		defer broker.Close(ctx)

		starting, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		if err := broker.Ping(starting); err != nil {
			slog.WarnContext(ctx, "events wait in the outbox", "error", err) // and says why
		}
		return nil // serve
	}
	_ = run
}

// A reader of events of one's own has a queue of its own, so that it takes none from
// guard-monitor. An event may come twice: it is recognized by its ID.
func Example_reader() {
	run := func(ch *amqp.Channel, store func(notify.Event) error) error {
		if _, err := ch.QueueDeclare("orders.alarms", true, false, false, false, nil); err != nil {
			return err
		}
		if err := ch.QueueBind("orders.alarms", "event.*", "belay.events", false, nil); err != nil {
			return err
		}
		messages, err := ch.Consume("orders.alarms", "", false, false, false, false, nil)
		if err != nil {
			return err
		}
		for message := range messages {
			var ev notify.Event
			if err := ev.UnmarshalJSON(message.Body); err != nil {
				slog.Warn("message is no event", "error", err)
			} else if err := store(ev); err != nil {
				return err
			}
			if err := message.Ack(false); err != nil {
				return err
			}
		}
		return nil
	}
	_ = run
}

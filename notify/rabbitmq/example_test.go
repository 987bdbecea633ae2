package rabbitmq_test

import (
	"context"
	"log/slog"
	"time"

	"github.com/belaygo/belay/notify"
	"github.com/belaygo/belay/notify/rabbitmq"
)

// A publisher connects when it has something to say, so ask it at start-up
// whether it can. Its place is behind an outbox: see the example of that package.
func ExamplePublisher_Ping() {
	// amqpURL is such as amqps://user:password@rabbit-1:5671,rabbit-2:5671/
	run := func(ctx context.Context, amqpURL string) error {
		broker, err := rabbitmq.NewPublisher(amqpURL, rabbitmq.PublisherConfig{Name: "orders"})
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

// A reader of events of one's own. It has the queue of guard-monitor, so run one
// of the two; an event is acknowledged when the handler has returned nil.
func ExampleConsumer() {
	run := func(ctx context.Context, amqpURL string, store func(context.Context, notify.Event) error) error {
		consumer, err := rabbitmq.NewConsumer(amqpURL, rabbitmq.ConsumerConfig{Logger: slog.Default()})
		if err != nil {
			return err
		}
		return consumer.Run(ctx, func(ctx context.Context, ev notify.Event, _ []byte) error {
			return store(ctx, ev) // idempotent by ev.ID
		})
	}
	_ = run
}

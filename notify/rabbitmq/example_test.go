package rabbitmq_test

import (
	"context"
	"log/slog"

	"github.com/belaygo/belay/notify"
	"github.com/belaygo/belay/notify/rabbitmq"
)

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

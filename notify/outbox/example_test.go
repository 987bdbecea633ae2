package outbox_test

import (
	"context"
	"log/slog"

	"gorm.io/gorm"

	"github.com/belaygo/belay/notify/outbox"
	"github.com/belaygo/belay/notify/rabbitmq"
)

// Events go to the business database first and from there to RabbitMQ. At the
// end of the program the outbox is closed before the publisher.
func Example() {
	run := func(ctx context.Context, db *gorm.DB, amqpURL string) error {
		broker, err := rabbitmq.NewPublisher(amqpURL, rabbitmq.PublisherConfig{Name: "orders"})
		if err != nil {
			return err
		}
		defer broker.Close(ctx)

		if err := outbox.Migrate(ctx, db); err != nil {
			return err
		}
		events, err := outbox.New(db, outbox.Config{Service: "orders", Relay: broker, Logger: slog.Default()})
		if err != nil {
			return err
		}
		defer events.Close(ctx)

		return nil // give events to guard.Config.Publisher, and serve
	}
	_ = run
}

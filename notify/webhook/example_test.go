package webhook_test

import (
	"context"
	"errors"
	"os"

	"gorm.io/gorm"

	"github.com/belaygo/belay/notify/outbox"
	"github.com/belaygo/belay/notify/webhook"
)

func Example() {
	// start returns where a guard's events go, and what stops it.
	start := func(ctx context.Context, db *gorm.DB) (*outbox.Outbox, func(context.Context) error, error) {
		publisher, err := webhook.New("https://monitor.example.com:9440", webhook.Config{Token: os.Getenv("MONITOR_TOKEN")})
		if err != nil {
			return nil, nil, err
		}
		box, err := outbox.New(db, outbox.Config{Service: "orders", Relay: publisher})
		if err != nil {
			return nil, nil, errors.Join(err, publisher.Close(ctx))
		}
		stop := func(ctx context.Context) error {
			return errors.Join(box.Close(ctx), publisher.Close(ctx)) // in this order
		}
		return box, stop, nil
	}
	_ = start
}

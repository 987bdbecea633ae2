package amqpinbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/inbox"
	"github.com/belaygo/belay/internal/background"
)

// Config sets up Serve. Inbox and Handle are required.
type Config struct {
	Inbox *inbox.Inbox
	// Handle executes a message in tx. It returns inbox.Rejected for one that will never
	// take effect; after any other error the message is retried. If it panics, so does
	// the program, and the broker delivers the message again.
	Handle func(ctx context.Context, tx *gorm.DB, d amqp.Delivery) error
	// Options returns the options of the operation, such as guard.Also for the rows
	// that it changes.
	Options func(amqp.Delivery) []guard.Option
	// ID returns the id of a message, for producers that set no MessageId: the id that the
	// producer puts into a header or into the body, equal for each delivery and different
	// for each message. A message whose id is empty is rejected. Defaults to the MessageId.
	ID func(amqp.Delivery) string
	// Workers is how many messages are handled at a time. Defaults to 1, which handles them in
	// the order of their delivery: later messages wait while one is retried, for Patience at
	// most. After that the message goes back to the queue and loses its place, even with a
	// prefetch of 1: RabbitMQ may put it behind others. If the order matters, Patience must be
	// longer than any outage, and the broker's consumer_timeout longer than Patience.
	Workers int
	// Timeout limits one try. Defaults to 30 s.
	Timeout time.Duration
	// Patience is how long a message is tried in its place. Defaults to 5 minutes.
	Patience time.Duration
	// Logger gets why messages are rejected, at the level error, and why they are tried again:
	// a warning for the first try of a delivery that fails; each later try, or one that is
	// only busy, at the level debug; and at the level info why a message goes back to the
	// queue. Defaults to slog.Default().
	Logger *slog.Logger
}

func (c Config) withDefaults() Config {
	if c.Options == nil {
		c.Options = func(amqp.Delivery) []guard.Option { return nil }
	}
	if c.ID == nil {
		c.ID = func(d amqp.Delivery) string { return d.MessageId }
	}
	c.Workers = cmp.Or(c.Workers, 1)
	c.Timeout = cmp.Or(c.Timeout, 30*time.Second)
	c.Patience = cmp.Or(c.Patience, 5*time.Minute)
	c.Logger = background.Logger(c.Logger)
	return c
}

func (c Config) validate() error {
	switch {
	case c.Inbox == nil:
		return errors.New("amqpinbox: Config.Inbox is nil")
	case c.Handle == nil:
		return errors.New("amqpinbox: Config.Handle is nil")
	case c.Workers < 0 || c.Timeout < 0 || c.Patience < 0:
		return fmt.Errorf("amqpinbox: Workers %d, Timeout %v or Patience %v is negative", c.Workers, c.Timeout, c.Patience)
	}
	return nil
}

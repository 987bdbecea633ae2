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
)

// Config sets up Serve. Inbox and Handle are required.
type Config struct {
	Inbox *inbox.Inbox
	// Handle does what a message asks for, in tx. It returns inbox.Rejected for one that
	// will never take effect; any other error has it tried again. If it panics, so does
	// the program, and the broker delivers the message again.
	Handle func(ctx context.Context, tx *gorm.DB, d amqp.Delivery) error
	// Options returns those of the operation, such as guard.Also for what it changes.
	Options func(amqp.Delivery) []guard.Option
	// Workers is how many messages are handled at a time. Defaults to 1, which keeps
	// their order.
	Workers int
	// Timeout limits one try. Defaults to 30 s.
	Timeout time.Duration
	// Patience is how long a message is tried in its place. Defaults to 5 minutes.
	Patience time.Duration
	// Logger gets why messages are tried again or rejected. Defaults to slog.Default().
	Logger *slog.Logger
}

func (c Config) withDefaults() Config {
	if c.Options == nil {
		c.Options = func(amqp.Delivery) []guard.Option { return nil }
	}
	c.Workers = cmp.Or(c.Workers, 1)
	c.Timeout = cmp.Or(c.Timeout, 30*time.Second)
	c.Patience = cmp.Or(c.Patience, 5*time.Minute)
	c.Logger = cmp.Or(c.Logger, slog.Default())
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

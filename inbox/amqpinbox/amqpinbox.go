// Package amqpinbox handles deliveries of RabbitMQ by an inbox: each message takes effect
// once, and is acknowledged then.
//
//	deliveries, err := ch.Consume("payments", "", false, false, false, false, nil)
//	if err != nil {
//		return err
//	}
//	return amqpinbox.Serve(ctx, deliveries, amqpinbox.Config{Inbox: box, Handle: book})
//
// Set a prefetch (Channel.Qos) of at least Workers. A message needs a MessageId.
//
// A message that can't be handled now is tried again in its place, as RabbitMQ drops a
// message of a quorum queue that it has delivered too often (20 times since 4.0), so that an
// outage would empty the queue. After Config.Patience it goes back to the queue. Keep that
// below the broker's consumer_timeout, 30 minutes by default. A message that is rejected goes
// to the dead letters of its queue, if it has any.
package amqpinbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"gorm.io/gorm"

	"github.com/belaygo/belay/guard"
	"github.com/belaygo/belay/inbox"
	"github.com/belaygo/belay/internal/wait"
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

// ErrEnded is returned by Serve when there are no deliveries any more: the channel, or its
// connection, was closed.
var ErrEnded = errors.New("amqpinbox: the deliveries have ended")

const (
	firstPause   = 100 * time.Millisecond // before the second try; it doubles with each
	longestPause = 30 * time.Second
)

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

// Serve handles deliveries until ctx ends, and returns nil then, or until they end. It waits
// for the messages that are being handled, which go back to the queue if ctx ends before they
// are done.
func Serve(ctx context.Context, deliveries <-chan amqp.Delivery, cfg Config) error {
	if err := cfg.validate(); err != nil {
		return err
	}
	s := server{cfg.withDefaults()}
	errs := make([]error, s.cfg.Workers)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var workers sync.WaitGroup
	for i := range errs {
		workers.Go(func() {
			defer cancel() // the others are of the same channel
			errs[i] = s.work(ctx, deliveries)
		})
	}
	workers.Wait()
	return errors.Join(errs...)
}

type server struct{ cfg Config }

func (s server) work(ctx context.Context, deliveries <-chan amqp.Delivery) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case d, ok := <-deliveries:
			if !ok {
				return ErrEnded
			}
			if err := s.settle(d, s.handle(ctx, d)); err != nil {
				return fmt.Errorf("%w: %w", ErrEnded, err)
			}
		}
	}
}

// handle tries a message in its place.
func (s server) handle(ctx context.Context, d amqp.Delivery) inbox.Decision {
	patient, cancel := context.WithTimeout(ctx, s.cfg.Patience)
	defer cancel()
	for try := 0; ; try++ {
		decision, err := s.try(patient, d)
		if decision != inbox.Retry {
			if err != nil {
				s.cfg.Logger.Error("message rejected", "message", d.MessageId, "error", err)
			}
			return decision
		}
		if patient.Err() == nil {
			s.cfg.Logger.Warn("message is tried again", "message", d.MessageId, "error", err)
		}
		if wait.Sleep(patient, wait.After(try, firstPause, longestPause), nil) != nil {
			return inbox.Retry
		}
	}
}

func (s server) try(ctx context.Context, d amqp.Delivery) (inbox.Decision, error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	op := func(ctx context.Context, tx *gorm.DB) error { return s.cfg.Handle(ctx, tx, d) }
	return s.cfg.Inbox.Handle(ctx, inbox.Message{ID: d.MessageId, Body: d.Body, Redelivered: d.Redelivered}, op, s.cfg.Options(d)...)
}

// settle tells the broker what becomes of a message.
func (s server) settle(d amqp.Delivery, decision inbox.Decision) error {
	switch decision {
	case inbox.Ack:
		return d.Ack(false)
	case inbox.Reject:
		return d.Nack(false, false)
	}
	return d.Nack(false, true)
}

// Package amqpinbox handles deliveries of RabbitMQ by an inbox: each message takes effect
// once, and is acknowledged then.
//
//	// deliveries are from Channel.Consume, without autoAck
//	err := amqpinbox.Serve(ctx, deliveries, amqpinbox.Config{Inbox: box, Handle: book})
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
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"gorm.io/gorm"

	"github.com/belaygo/belay/inbox"
	"github.com/belaygo/belay/internal/wait"
)

// ErrEnded is returned by Serve when there are no deliveries any more: the channel, or its
// connection, was closed.
var ErrEnded = errors.New("amqpinbox: the deliveries have ended")

const (
	firstPause   = 100 * time.Millisecond // before the second try; it doubles with each
	longestPause = 30 * time.Second
)

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

// Package amqpinbox handles deliveries of RabbitMQ by an inbox: each message takes effect
// once, and is then acknowledged.
//
//	// deliveries are from Channel.Consume, without autoAck
//	err := amqpinbox.Serve(ctx, deliveries, amqpinbox.Config{Inbox: box, Handle: book})
//
// Set a prefetch (Channel.Qos) of at least Workers. A message needs a MessageId, which many
// producers do not set by default, or an id by Config.ID: without one it is rejected.
//
// A message that cannot be handled now is retried in its place: RabbitMQ drops a message of a
// quorum queue that it has delivered too often (20 times since 4.0), so that an outage would
// empty the queue. After Config.Patience the message goes back to the queue. Keep that below
// the broker's consumer_timeout, 30 minutes by default. A message that is rejected goes to
// the dead letters of its queue, if it has any.
package amqpinbox

import (
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
	"github.com/belaygo/belay/internal/rabbit"
	"github.com/belaygo/belay/internal/wait"
)

// ErrEnded is returned by Serve when there are no deliveries any more: the channel, or its
// connection, was closed.
var ErrEnded = errors.New("amqpinbox: the deliveries have ended")

const (
	firstPause   = 100 * time.Millisecond // before the second try; it doubles with each
	longestPause = 30 * time.Second
)

// Serve handles deliveries until they end, or until ctx ends, in which case it returns nil.
// It waits for the messages that are being handled. Those that are not done then, and those
// that were delivered and not begun, go back to the queue, in their order, when the caller
// closes the channel: do that after Serve, and do not cancel the consumer before, since another
// one would get messages that come behind them.
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
			defer cancel() // the other workers use this channel, too
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
			if err := s.settle(ctx, d, s.handle(ctx, d)); err != nil {
				return fmt.Errorf("%w: %w", ErrEnded, err)
			}
		}
	}
}

// handle tries a message in its place.
func (s server) handle(ctx context.Context, d amqp.Delivery) inbox.Decision {
	patient, cancel := context.WithTimeout(ctx, s.cfg.Patience)
	defer cancel()
	log := s.cfg.Logger.With("message", s.cfg.ID(d))
	for try, warned := 1, false; ; try++ {
		decision, err := s.try(patient, d)
		if decision != inbox.Retry {
			if err != nil {
				log.ErrorContext(ctx, "message rejected", "tries", try, "error", err)
			}
			return decision
		}
		if patient.Err() == nil {
			level := slog.LevelDebug
			if !warned && !errors.Is(err, guard.ErrBusy) {
				level, warned = slog.LevelWarn, true
			}
			log.Log(ctx, level, "message is tried again", "tries", try, "error", err)
		}
		if wait.Sleep(patient, wait.After(try-1, firstPause, longestPause), nil) != nil {
			if ctx.Err() == nil {
				log.InfoContext(ctx, "message goes back to the queue", "tries", try, "error", err)
			}
			return inbox.Retry
		}
	}
}

func (s server) try(ctx context.Context, d amqp.Delivery) (inbox.Decision, error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	op := func(ctx context.Context, tx *gorm.DB) error { return s.cfg.Handle(ctx, tx, d) }
	return s.cfg.Inbox.Handle(ctx, s.message(d), op, s.cfg.Options(d)...)
}

// message returns a delivery for the Inbox. The bodies of Belay's own messages are not compared: see
// inbox.Message.
func (s server) message(d amqp.Delivery) inbox.Message {
	m := inbox.Message{ID: s.cfg.ID(d), Body: d.Body, Redelivered: d.Redelivered}
	if d.Headers[rabbit.MessageHeader] == m.ID {
		m.Body = nil
	}
	return m
}

// settle answers the broker with the decision about a message. One that was not done when ctx ended
// gets no answer: given back alone, it would come behind those that were delivered with it.
func (s server) settle(ctx context.Context, d amqp.Delivery, decision inbox.Decision) error {
	switch {
	case decision == inbox.Ack:
		return d.Ack(false)
	case decision == inbox.Reject:
		return d.Nack(false, false)
	case ctx.Err() == nil:
		return d.Nack(false, true)
	}
	return nil
}

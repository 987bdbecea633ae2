// Package anybroker sends events to guard-monitor over any broker that Watermill
// supports: Kafka, NATS, Google Cloud Pub/Sub, Redis Streams.
package anybroker

import (
	"context"
	"errors"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/belaygo/belay/notify"
)

const topic = "belay.events"

// A Publisher is the Relay of an outbox. It counts on a Watermill publisher that returns
// nil only when the broker has the message for good: with Kafka that takes
// Producer.RequiredAcks = sarama.WaitForAll, and a limit in Producer.Timeout.
type Publisher struct{ To message.Publisher }

// Publish publishes an event under its id.
func (p Publisher) Publish(ctx context.Context, ev notify.Event) error {
	body, err := ev.MarshalJSON()
	if err != nil {
		return err
	}
	return p.PublishRaw(ctx, body)
}

// PublishRaw publishes an event as this or another version has stored it. An error that
// matches notify.ErrInvalidEvent makes the outbox set it aside.
func (p Publisher) PublishRaw(ctx context.Context, body []byte) error {
	var ev notify.Event
	if err := ev.UnmarshalJSON(body); err != nil {
		return err
	}
	return p.To.Publish(topic, message.NewMessageWithContext(ctx, ev.ID, body))
}

// Forward posts messages to guard-monitor, until they end. It acknowledges an event only
// when the monitor has it, or can never take it.
func Forward(messages <-chan *message.Message, monitor notify.RawPublisher, rejected func(*message.Message, error)) {
	for m := range messages {
		switch err := monitor.PublishRaw(m.Context(), m.Payload); {
		case err == nil:
			m.Ack()
		case errors.Is(err, notify.ErrInvalidEvent):
			rejected(m, err)
			m.Ack()
		default:
			m.Nack() // it comes again
		}
	}
}

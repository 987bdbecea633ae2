package rabbitmq

import (
	"context"
	"encoding/json"
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/belaygo/belay/notify"
)

// PublishHeartbeat returns nil once the broker has put h into the monitor's queue
// of heartbeats. The errors are those of Publish.
func (p *Publisher) PublishHeartbeat(ctx context.Context, h notify.Heartbeat) error {
	body, err := json.Marshal(h)
	if err != nil {
		return fmt.Errorf("rabbitmq: encode heartbeat: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, p.cfg.Timeout)
	defer cancel()
	err = p.guarded(newRequest(ctx, heartbeatKey, amqp.Publishing{
		ContentType:  notify.ContentType,
		DeliveryMode: amqp.Transient,
		MessageId:    h.ID,
		Type:         notify.HeartbeatType,
		Timestamp:    h.At.UTC(),
		AppId:        short(h.Service),
		Body:         body,
	}))
	if err != nil {
		return fmt.Errorf("publish heartbeat: %w", err)
	}
	return nil
}

// listen begins to read heartbeats, if somebody wants them.
func (r *reader) listen(ch *amqp.Channel) (err error) {
	if r.cfg.Heartbeat == nil {
		return nil
	}
	r.heartbeats, err = ch.Consume(HeartbeatQueue, "", false, false, false, false, nil)
	if err != nil {
		return fmt.Errorf("consume %s: %w", HeartbeatQueue, err)
	}
	return nil
}

// hear takes one heartbeat. It is acknowledged only so that the broker sends no
// more than Prefetch of them ahead, and forgets the rest by its own rules.
func (r *reader) hear(ctx context.Context, d *amqp.Delivery) error {
	var h notify.Heartbeat
	if err := h.UnmarshalJSON(d.Body); err != nil {
		r.common.logger.Warn("message is no heartbeat", "message_id", d.MessageId, "type", d.Type, "bytes", len(d.Body), "error", err)
	} else {
		r.metrics.heartbeats.Inc()
		r.cfg.Heartbeat(ctx, h)
	}
	if err := d.Ack(false); err != nil {
		return fmt.Errorf("acknowledge heartbeat: %w", err)
	}
	return nil
}

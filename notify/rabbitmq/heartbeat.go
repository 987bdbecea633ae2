package rabbitmq

import (
	"context"
	"encoding/json"
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/belaygo/belay/internal/rabbit"
	"github.com/belaygo/belay/notify"
	"github.com/belaygo/belay/notify/internal/cloudevent"
)

// PublishHeartbeat returns nil once the broker has routed h to a queue and
// confirmed it. That the queue is the monitor's is not checked, as it is for an
// event: the monitor notices that heartbeats are missing. The errors are those of
// Publish.
func (p *Publisher) PublishHeartbeat(ctx context.Context, h notify.Heartbeat) error {
	body, err := json.Marshal(h)
	if err != nil {
		return fmt.Errorf("rabbitmq: encode heartbeat: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, p.cfg.Timeout)
	defer cancel()
	err = p.guarded(newRequest(ctx, "", rabbit.HeartbeatKey, amqp.Publishing{
		ContentType:  cloudevent.ContentType,
		DeliveryMode: amqp.Transient,
		MessageId:    h.ID,
		Type:         cloudevent.Heartbeat,
		Timestamp:    h.At.UTC(),
		AppId:        rabbit.Short(h.Service),
		Body:         body,
	}))
	if err != nil {
		return fmt.Errorf("publish heartbeat: %w", err)
	}
	return nil
}

package rabbitmq

import (
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/belaygo/belay/internal/rabbit"
	"github.com/belaygo/belay/notify"
	"github.com/belaygo/belay/notify/internal/cloudevent"
)

// encode returns the message for an event: structured CloudEvents JSON, with
// what a person looks for first copied to the properties.
func encode(ev notify.Event) (amqp.Publishing, error) {
	body, err := ev.MarshalJSON()
	if err != nil {
		return amqp.Publishing{}, fmt.Errorf("encode event: %w", err)
	}
	return amqp.Publishing{
		Headers:      headers(cloudevent.CheckTrace(ev.Trace.Parent, ev.Trace.State)),
		ContentType:  cloudevent.ContentType,
		DeliveryMode: amqp.Persistent,
		MessageId:    ev.ID,
		Type:         cloudevent.Event,
		Timestamp:    ev.CaughtAt.UTC(),
		AppId:        rabbit.Short(ev.Service),
		Body:         body,
	}, nil
}

// headers let a consumer continue the trace before it has read the body.
func headers(traceParent, traceState string) amqp.Table {
	if traceParent == "" {
		return nil
	}
	table := amqp.Table{"traceparent": traceParent}
	if traceState != "" {
		table["tracestate"] = traceState
	}
	return table
}

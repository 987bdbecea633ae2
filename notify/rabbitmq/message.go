package rabbitmq

import (
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/belaygo/belay/internal/cloudevent"
	"github.com/belaygo/belay/internal/rabbit"
	"github.com/belaygo/belay/notify"
)

// routed is the part of an event's data that the publisher reads.
type routed struct {
	Verdict string `json:"verdict"`
	Service string `json:"service"`
}

// read returns the envelope of a stored event.
func read(body []byte) (env cloudevent.Envelope[routed], err error) {
	env, err = cloudevent.Open[routed](body, cloudevent.Event)
	if err == nil && !isWord(env.Data.Verdict) {
		err = cloudevent.Invalid("verdict %.40q is not a word", env.Data.Verdict)
	}
	return env, err
}

// encode returns the JSON of an event, and the part of its envelope that a message
// needs.
func encode(ev notify.Event) (env cloudevent.Envelope[routed], body []byte, err error) {
	body, err = ev.MarshalJSON()
	env.ID, env.Time, env.Data = ev.ID, ev.CaughtAt.UTC(), routed{Verdict: string(ev.Verdict), Service: ev.Service}
	env.TraceParent, env.TraceState = cloudevent.CheckTrace(ev.Trace.Parent, ev.Trace.State)
	return env, body, err
}

// newMessage returns a message of structured CloudEvents JSON. The fields that people
// look for first are copied to the properties.
func newMessage(eventType, id, service string, at time.Time, body []byte) amqp.Publishing {
	return amqp.Publishing{
		ContentType:  cloudevent.ContentType,
		DeliveryMode: amqp.Persistent,
		MessageId:    id,
		Type:         eventType,
		Timestamp:    at.UTC(),
		AppId:        rabbit.Short(service),
		Body:         body,
	}
}

// isWord reports whether s can be one word of a routing key, which rabbit.EventPattern
// matches.
func isWord(s string) bool {
	const longest = 100
	return s != "" && len(s) <= longest && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789_") == ""
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

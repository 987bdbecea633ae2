// Package notify defines the event that reports a lock failure, and the publishers of
// events.
//
// A guard gives its events to a [Publisher]. Your own Publisher may count them, filter
// them, or send them elsewhere:
//
//	publisher := notify.PublisherFunc(func(ctx context.Context, ev notify.Event) error {
//		failures.WithLabelValues(string(ev.Verdict)).Inc()
//		return box.Publish(ctx, ev) // an outbox.Outbox
//	})
//	g, err := guard.New(db, locker, guard.Config{Service: "orders", Publisher: publisher})
//	if err != nil {
//		return err
//	}
//	defer g.Close(ctx)
//
// [Log] is the simplest Publisher. notify/outbox stores events in the business database
// and forwards them, notify/rabbitmq publishes them to a broker, and notify/webhook posts
// them to guard-monitor.
//
// An [Event] reports one failure of the first layer, the lock. Its JSON is a
// CloudEvents 1.0 event in structured mode. The folder schema has its JSON Schema, and
// testdata one example for each [Verdict]. The attributes traceparent and tracestate
// carry the trace of the operation; the members of data are the fields of Event. A
// reader ignores members that it does not know, so that members can be added without
// a new type. An event never carries the values of a row.
package notify

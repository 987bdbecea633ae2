// Package intake takes events and heartbeats into guard-monitor, from RabbitMQ or over HTTP.
//
//	consumer, err := intake.New(amqpURL, intake.Config{Heartbeat: heard, Logger: logger})
//	if err != nil {
//		return err
//	}
//	return consumer.Run(ctx, func(ctx context.Context, ev notify.Event, raw []byte, sender string) error {
//		return store.Add(ctx, ev, raw, sender) // idempotent by ev.ID
//	})
//
// A [Consumer] acknowledges an event only after its handler has returned nil,
// so that an event is handled at least once; handlers must be idempotent by
// Event.ID. What is no event goes to the dead letters. When a handler fails,
// the consumer keeps the delivery and calls the handler again after a growing
// pause, for as long as it takes. It does not give the message back: the broker
// counts each return, and after [DeliveryLimit] of them takes the message for
// poisonous, so that a store that is down for minutes would empty the queue into
// the dead letters. A handler rejects an event that can never be stored with
// [ErrReject]. Meanwhile at most Prefetch messages wait in memory, and the
// broker keeps the rest. If the connection ends meanwhile, or RabbitMQ takes the
// messages back since they are not acknowledged within its consumer_timeout, 30
// minutes by default, that is one return of each; the consumer connects again only
// when the handler has taken or rejected the event, which then comes once more.
//
// Heartbeats are read on a connection of their own, from a queue of their own:
// if that fails, events still come. Consumer.Listening says whether the
// silence of a service means something.
//
// An [Endpoint] takes events and heartbeats that are posted over HTTP, without a broker. It
// answers only after the event is stored, and what it does not take stays with the sender:
// it keeps nothing and retries nothing.
//
// Only the monitor declares the topology (see [Declare]), since the arguments of
// a queue cannot be changed and must not be fought over. A Consumer declares it
// whenever it connects.
//
// Connections are those of package internal/rabbit: an acknowledgement can only reach
// the channel that brought the message, and attempts go on for ever, after pauses that
// grow from half a second to half a minute with full jitter. The client library's own
// recovery reopens the same channel object, whose delivery tags start again at one: a
// late acknowledgement then hits another message, which nobody has processed.
package intake

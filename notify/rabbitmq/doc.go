// Package rabbitmq publishes events to RabbitMQ, from where guard-monitor takes them.
//
//	publisher, err := rabbitmq.New("amqp://user:password@rabbit-1,rabbit-2/", rabbitmq.Config{})
//	if err != nil {
//		return err
//	}
//	defer publisher.Close(ctx)
//	box, err := outbox.New(db, outbox.Config{Service: "orders", Relay: publisher})
//	if err != nil {
//		return err
//	}
//	defer box.Close(ctx) // before the publisher
//
// A [Publisher] sends each event persistent, mandatory and with a publisher
// confirm, one at a time: Publish returns nil only after the broker has found
// the monitor's queue, routed the event and taken responsibility for it. An unroutable
// message is confirmed, too, but returned first; with one message in flight the return
// certainly comes before the confirm, and is matched by its id. If the outcome is
// unknown (a timeout, a lost connection) Publish returns an error, and the event may be
// published again under its id.
//
// Only the monitor declares the topology, because the arguments of a queue cannot be
// changed. Until it has, Publish returns [ErrUnroutable] and the events stay in the
// outbox.
//
// # The check of the queue
//
// Mandatory is not enough if other queues are bound to the exchange, for example to
// watch events: any of them satisfies it. So before each event the Publisher declares
// the queue belay.monitor passively, without waiting. The broker executes them in
// order: if the queue does not exist, it closes the channel and drops the event, and
// Publish returns [ErrUnroutable].
//
// A queue that exists again may not be bound yet: a monitor declares it, binds it
// and then reads it. So a Publisher that has found it missing waits for an answer
// before it publishes again. It continues at once if the queue has a consumer, and
// otherwise after the queue has existed for one second. Until then Publish returns
// [ErrUnroutable].
//
// Two windows remain in which another queue takes the event and the monitor never
// gets it. The first is between the declaration and the binding, for a Publisher
// that has not found the queue missing (it has just started, or had nothing to
// publish), or if the binding takes longer than that second. The second is between the
// check and the event, if the queue is deleted there. A plain deletion would have
// removed the event with the queue a moment later; a deletion with if-empty would not.
//
// Two things are not checked: that the queue is still bound to the exchange, which the
// monitor ensures whenever it connects, and the queue of the heartbeats, whose absence
// the monitor detects. The check covers only the Publisher's own broker: if federation
// or a shovel forwards events to another broker, that one's queue is not checked, but a
// queue of this name is required here. There is no check if the broker refuses it:
// RabbitMQ 4.2.6 and 4.3.0 require configure on the queue, later versions any
// permission. Grant write: without read on an exchange it permits nothing else. A
// Publisher whose check is refused logs that, and publishes without it.
//
// # The sender
//
// Each message names the user of the URL in its property user_id, and the broker
// refuses it if the connection is another user's: so a monitor can restrict users to
// their services. A URL that leaves authentication to a certificate
// (auth_mechanism=external) names no user, unless it has a user as well. A Publisher
// whose user is refused, because a certificate or a token names another, logs that, and
// names no user from then on.
//
// # Connections
//
// A connection and its channel form one generation: a single goroutine opens, uses and
// closes both, and a fault of either ends both. The next generation has new objects.
// There is one exception: a Publisher whose channel the broker has closed, because the
// queue or the exchange is missing, opens a new channel on its connection. The client
// library's own recovery is off: it gives up for good after a few attempts. Here
// attempts never end, after pauses that grow from half a second to half a minute with
// full jitter. A Publish or a Ping does not wait for the end of such a pause: it makes
// the Publisher try at once.
//
// A URL may name several nodes of a cluster; after a failure the next one is
// tried. After several failures in a row a circuit breaker makes Publish fail at once
// for a second, and then lets one through.
//
// Every wait for a broker has a limit: dialling and the handshake have a common one,
// each write has a deadline, each confirm a timeout, and an unanswered closing
// handshake is cut off. A broker that announces that it blocks publishers for lack of
// memory or disk is not sent any messages.
package rabbitmq

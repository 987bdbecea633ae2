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
// the monitor's queue, routed the event and taken responsibility for it. A
// message that no queue is bound for is confirmed as well, but returned first;
// with one message in flight the return is certain to be seen before the confirm,
// and matched by its id. Where the outcome is unknown (a timeout, a lost connection)
// Publish returns an error, and the event may be published again under the same
// id.
//
// Only the monitor declares the topology, since the arguments of a queue cannot be
// changed and must not be fought over. Until it has, Publish returns [ErrUnroutable]
// and the events stay in the outbox.
//
// # The check of the queue
//
// Mandatory is not enough where other queues are bound to the exchange, to watch
// events, say: any of them satisfies it. So in front of each event the Publisher
// declares the queue belay.monitor passively, without waiting. The broker does one
// after the other: if the queue does not exist, it closes the channel and drops the
// event, and Publish returns [ErrUnroutable].
//
// A queue that exists again may not be bound yet: a monitor declares it, binds it
// and then reads it. So a Publisher that has seen it missing waits for an answer
// before it publishes again. It goes on at once if the queue has a consumer, and
// otherwise after the queue has existed for one second. Until then Publish returns
// [ErrUnroutable].
//
// Two windows remain in which another queue takes the event and the monitor never
// gets it. The first is between the declaration and the binding, for a Publisher
// that has not seen the queue missing (it has just started, or had nothing to
// publish meanwhile), or if the binding takes longer than that second. The second is
// between the check and the event, if the queue is deleted there. A plain deletion
// would have removed the event with the queue a moment later; a deletion with
// if-empty would not.
//
// Two things are not checked: that the queue is still bound to the exchange, which
// the monitor sees to whenever it connects, and the queue of the heartbeats, which
// the monitor misses. The check concerns the Publisher's own broker alone: where
// federation or a shovel takes events on to another one, that broker's queue is not
// checked, while one of the same name is required here. Nor is anything checked
// where the broker refuses it: RabbitMQ 4.2.6 and 4.3.0 require configure on the
// queue, later versions any permission. Write is the one to give; without read on
// an exchange it permits nothing else. A Publisher that is refused logs it, and
// publishes without the check.
//
// # The sender
//
// Each message names the user of the URL in its property user_id, and the broker
// refuses it if the connection is another user's: so a monitor can bind users to the
// services that they speak for. A URL that leaves authentication to a certificate
// (auth_mechanism=external) names nobody, unless it has a user as well. A Publisher
// whose user is refused, since a certificate or a token names another, logs it, and
// names nobody from then on.
//
// # Connections
//
// A connection and its channel live and die together, as one generation: they
// are opened, used and closed by a single goroutine, and a fault of one of them ends
// both. The next generation has new objects. There is one exception: a Publisher
// whose channel the broker has closed, since the queue or the exchange is missing,
// opens a new channel on the same connection. The client library's own recovery is
// left off: it gives up for good after a few attempts. Here attempts go on for ever,
// after pauses that grow from half a second to half a minute with full jitter. A
// Publish or a Ping does not wait out such a pause: it makes the Publisher try at
// once.
//
// A URL may name several nodes of a cluster; after a failure the next one is
// tried. After several failures in a row a circuit breaker has Publish fail at
// once for a second, and then lets one try.
//
// Nothing waits without end for a broker: dialling and the handshake have one common
// limit, each write has a deadline, each confirm a timeout, and a closing handshake
// that is not answered is cut off. A broker that announces that it takes no messages
// for lack of memory or disk is not sent any.
package rabbitmq

// Package amqprelay takes messages from a relay to RabbitMQ.
//
//	broker, err := amqprelay.New("amqp://user:password@host:5672/", amqprelay.Config{Exchange: "sales"})
//	if err != nil {
//		return err
//	}
//	defer broker.Close(ctx) // after the relay
//	r, err := relay.New(db, relay.Config{Routes: []relay.Route{{Topic: relay.Others, To: broker}}})
//
// A message goes to one exchange, with its topic as the routing key. It is persistent, and
// mandatory: if no queue is bound for it, the broker returns it, and the relay tries it again. It
// is accepted when the broker has confirmed it: a durable queue has it on disk, and a quorum
// queue on a majority. The MessageId is the message's id, by which package amqpinbox lets it take
// effect once. The header belay-key is the message's key, and belay-message its id: by that amqpinbox
// knows that no other message has the id, whatever its body is.
//
// Messages are sent together on one channel of one connection; the relay keeps those of one key
// apart. So a message that is returned or refused is not overtaken by others of its key. In the
// queue, order lasts only with one consumer at a time: declare it with x-single-active-consumer,
// and handle messages one by one.
package amqprelay

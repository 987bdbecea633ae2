// Package rabbit is what publishers of events and guard-monitor share of RabbitMQ:
// the names on the broker, its URLs, and sessions.
//
//	dialer, err := rabbit.NewDialer("amqp://user:password@one,two/", rabbit.Config{Name: "orders"})
//	if err != nil {
//		return err
//	}
//	session, err := dialer.Dial(ctx, func(ch *amqp.Channel) error { return ch.Confirm(false) })
//	if err != nil {
//		return err
//	}
//	defer session.Close()
//
// A connection and its channel live and die together, as one generation: a single
// goroutine opens, uses and closes them, and a fault of one of them ends both. The
// client library's own recovery is left off: it gives up for good after a few attempts.
//
// Nothing waits without end for a broker: dialling, the handshake and the
// preparation of the channel have one common limit, each write has a deadline, and a
// closing handshake that is not answered is cut off.
package rabbit

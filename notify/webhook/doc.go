// Package webhook publishes events to guard-monitor over HTTP, without a broker.
//
//	publisher, err := webhook.New("https://monitor.example.com:9440", webhook.Config{Token: token})
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
// A [Publisher] posts each event as a CloudEvent in structured mode. Publish returns nil
// only after the monitor has answered that it has stored the event of this id: the
// status alone, which a proxy or another server may give, is no proof. If the outcome is
// unknown (a timeout, a lost connection) Publish returns an error, and the event may be
// published again under its id; the monitor stores it once. So events need an outbox in
// front of the Publisher, which keeps them until the monitor has answered.
//
// # Answers
//
// The monitor's answers, and their effects on an event in the outbox:
//
//	202  stored now: its row is deleted
//	200  it was stored before: its row is deleted
//	400  this monitor cannot read the event: set aside for an hour, logged (ErrInvalidEvent)
//	413  the event is too large: as 400
//	401  the token is wrong: kept, and logged once until that changes
//	403  the token is not for this service: kept and tried again within 10 minutes, logged;
//	     events of other services are relayed meanwhile (notify.ErrRefused)
//	429  overloaded, or this token is over its limits: kept, and the relay pauses for the
//	     time in Retry-After
//	503  the monitor cannot store events now: as 429
//
// If a proxy in between answers 413, that counts as a 403: set the proxy's limit to at least
// 256 KiB. After every other answer the event is kept and published again. Redirects are not
// followed, because the token would be sent to the new address.
//
// # Connections
//
// A Publisher has at most four connections, of HTTP/1.1: one whose answer does not come
// in time is closed, and never used again. With plain http the token crosses the network
// unencrypted; a monitor that is not on loopback takes it only if its settings say so.
// Proxies are those of the environment (HTTPS_PROXY, NO_PROXY). After several failures
// in a row a circuit breaker makes Publish fail at once for a second, and then lets one
// through.
package webhook

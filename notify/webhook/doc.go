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
// status alone, which a proxy or another server may give, is no proof. Where the outcome
// is unknown (a timeout, a lost connection) Publish returns an error, and the event may
// be published again under the same id; the monitor stores it once. So events need an
// outbox in front of the Publisher, which keeps them until then.
//
// # Answers
//
// What the monitor answers, and what becomes of an event in the outbox:
//
//	202  stored now: its row is deleted
//	200  it was stored before: likewise
//	400  it is no event to this monitor: set aside for an hour, logged (ErrInvalidEvent)
//	413  it is too large: likewise
//	401  the token is wrong: kept, and logged once until that changes
//	403  the token is not for this service: kept and tried again within 10 minutes, logged;
//	     events of other services go on (notify.ErrRefused)
//	429  overloaded, or this token is over its limits: kept, and the relay pauses as
//	     Retry-After says
//	503  the store takes nothing: likewise
//
// A 413 of a proxy in between is treated as a 403: the limit of the proxy is to be at least
// 256 KiB. An event is kept and published again after every other answer. Redirects are not
// followed, since the token would go with them.
//
// # Connections
//
// A Publisher has at most four connections, of HTTP/1.1: one whose answer does not come
// in time is closed, and never used again. With plain http the token crosses the network
// unencrypted; a monitor that is not on loopback takes it only if its settings say so.
// Proxies are those of the environment (HTTPS_PROXY, NO_PROXY). After several failures
// in a row a circuit breaker has Publish fail at once for a second, and then lets one try.
package webhook

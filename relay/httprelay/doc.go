// Package httprelay takes messages from a relay to an HTTP endpoint, as CloudEvents.
//
//	hook, err := httprelay.New("https://billing.example.com/events", httprelay.Config{Source: "/orders"})
//	if err != nil {
//		return err
//	}
//	r, err := relay.New(db, relay.Config{Routes: []relay.Route{{Topic: relay.Others, To: hook}}})
//
// A message is a POST in the binary mode of CloudEvents 1.0: the body is the message's, and the
// attributes are headers. Its headers content-type, traceparent and tracestate are those of the POST, and
// others are attributes if their names can be. ce-id is the message's id, ce-type its topic, ce-time the time when it
// was stored, and ce-partitionkey its key. Idempotency-Key has the id, too, so that package
// httpguard lets the request take effect once, and so has Belay-Message: by that httpguard knows that no
// other message of the Source has the id, whatever its body is.
//
// A message is accepted by an answer of 200 to 299. Answers of 429 and 503, and a connection that
// fails or is not made within 5 seconds, pause the whole route. The message becomes a dead letter by 410 and 413. After any other
// answer, and one that does not come in time, it is tried again, and the others of its key wait.
// Redirects are not followed.
package httprelay

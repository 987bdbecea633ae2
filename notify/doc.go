// Package notify carries the news that a lock failed from the process that
// noticed to the people who must know.
//
// An [Event] reports one failure of the first layer, the lock. On the wire it
// is a CloudEvents 1.0 event in structured JSON; schema has its JSON Schema and
// testdata one example for each [Verdict]. The attributes traceparent and
// tracestate carry the trace of the operation; the members of data are the fields
// of Event.
//
// Members that a reader does not know are ignored, so that members can be
// added without a new type. An event never carries the values of a row.
//
// A [Heartbeat] is a type of its own: it says that its sender lives and that
// the way to the monitor is open.
//
// A [Publisher] takes events. This package has the plainest one, [Log];
// notify/outbox stores events in the business database and forwards them, and
// notify/rabbitmq publishes to a broker.
package notify

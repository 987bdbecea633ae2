// Package notify carries the news that a lock failed from the process that
// noticed to the people who must know.
//
// An [Event] reports one failure of the first layer, the lock. On the wire it
// is a CloudEvents 1.0 event in structured JSON; schema has its JSON Schema and
// testdata one example for each [Verdict]. The attributes traceparent and
// tracestate carry the trace of the operation. The field data has these
// members, all optional but verdict, outcome, service, caught_at and count:
//
//	verdict             overlap, lost, unknown_commit, degraded, unavailable
//	outcome             committed, refused, rolled_back, unknown
//	service, instance   who reports
//	key                 the lock's key
//	table, index        the table whose row was refused, and its key columns
//	versions            {expected, found}: of a row that had another version
//	owner, token        of the lock that failed; the token is a decimal string,
//	                    since JSON numbers lose digits above 2^53
//	first_token         the token of the first caller in the reporting process
//	                    who had the lock since it was granted, if another
//	acquired_at, ttl_ms when the lock was granted, and for how long
//	deadline            until when it could be believed in
//	loss                expired, unrenewed, gone, max_hold: how it was lost
//	caught_at           when the failure was noticed
//	place               {node, slot}: where the lock was kept; slot -1 = none
//	holder_at_conflict  self, other, none, unknown
//	holder_owner        the owner id of another holder
//	count               how many like failures the event stands for; at the end
//	                    of an outage, of how many operations the outcome tells,
//	                    of which committed may be 0; of unavailable, how many
//	                    operations were refused
//	trace_id            W3C trace id
//	library             version of the library that built the event
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

package outbox

import "time"

// overtime is how long a call may outlast its context before it is logged.
const overtime = 10 * time.Second

// watch logs a call that does not return when its limit is over: until it does,
// the relay stands still. The returned function ends the watch.
func (c Config) watch(call string, limit time.Duration) (returned func() bool) {
	return time.AfterFunc(limit+overtime, func() {
		c.Logger.Error("events are not relayed: a call does not return at the end of its context", "call", call, "limit", limit)
	}).Stop
}

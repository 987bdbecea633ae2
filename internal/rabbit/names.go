package rabbit

import "strings"

// The names that publishers and the monitor share.
const (
	Exchange     = "belay.events"  // topic, durable; events and heartbeats arrive here
	Queue        = "belay.monitor" // quorum; the monitor reads it
	EventPattern = "event.*"       // binds Queue
	HeartbeatKey = "heartbeat"     // routing key of heartbeats
)

// MessageHeader is the header of a message of package relay, with the message's id.
const MessageHeader = "belay-message"

// EventKey returns the routing key of events with the given verdict.
func EventKey(verdict string) string { return "event." + verdict }

// maxShortString is the longest text, in bytes, of a message property.
const maxShortString = 255

// Short cuts s to what a property can hold.
func Short(s string) string {
	return strings.ToValidUTF8(s[:min(len(s), maxShortString)], "")
}

// Package deadletter lists and replays dead letters: messages that guard-monitor
// could not take.
//
// List fetches messages without acknowledging them and returns them to their queue
// in the end. Replay removes a message from the queue only after the broker has
// confirmed a copy. A replay that is cut short therefore leaves the message twice,
// not nowhere, and the monitor identifies the event by its ID. No copy is published
// while the monitor's queue is missing, because another queue on the exchange would
// confirm it.
//
// Messages come from anybody who may publish. All their text is hostile.
package deadletter

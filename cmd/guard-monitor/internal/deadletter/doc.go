// Package deadletter looks at the messages that guard-monitor could not take,
// and gives them back.
//
// They stay in their queue: to look is to fetch without acknowledging and to
// hand all back in the end. A message is taken out only after its copy was
// confirmed, so that a replay that is cut short leaves it twice rather than
// nowhere; the monitor knows an event by its ID. No copy is published while the
// monitor's queue is missing: another queue on the exchange would be confirmed, too.
//
// A message comes from anybody who may publish. All of it is hostile text.
package deadletter

// Package alerts tests the way of an event from the outbox to the monitor's store, over
// RabbitMQ and over HTTP, through all faults that it must survive.
package alerts

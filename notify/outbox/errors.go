package outbox

import "errors"

var (
	// ErrClosed is returned by Publish after Close.
	ErrClosed = errors.New("outbox: closed")
	// ErrNotDrained is matched by the errors of Close when events stay stored
	// for the next process.
	ErrNotDrained = errors.New("outbox: events stay stored")
)

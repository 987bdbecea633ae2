package outbox

import "errors"

var (
	// errNotDrained is matched by the errors of Close when events stay stored for the
	// next process.
	errNotDrained = errors.New("outbox: events stay stored")
	// errClosed is returned by Publish after Close.
	errClosed = errors.New("outbox: closed")
)

package outbox

import "errors"

// ErrNotDrained is matched by the errors of Close when events stay stored
// for the next process.
var ErrNotDrained = errors.New("outbox: events stay stored")

// errClosed is returned by Publish after Close.
var errClosed = errors.New("outbox: closed")

package rabbitmq

// The errors of Publish that only tests distinguish.
var (
	ErrClosed  = errClosed
	ErrBlocked = errBlocked
	ErrRefused = errRefused
	ErrOpen    = errOpen
)

// Package pipeline sends several statements of Belay in one round trip, where a driver can do that.
// database/sql has no such thing, so the driver's own package registers it.
package pipeline

import (
	"context"
	"database/sql/driver"
	"sync/atomic"
)

// A Statement is one of several that are sent together.
type Statement struct {
	Query string
	Args  []any
}

// A Result is what a statement has done.
type Result struct {
	Rows int64  // that it has written, or returned
	Text string // the first value of its first row, if that is a text
}

// A Pipeline is a connection of a driver.
type Pipeline interface {
	// Send sends statements together. The server executes them one after the other, until one
	// fails. It returns the results of those before that one, and its error, or that of the
	// connection.
	Send(ctx context.Context, all []Statement) ([]Result, error)
	// InTransaction reports whether the server gave its last answer within a transaction that has
	// not failed.
	InTransaction() bool
}

var registered atomic.Pointer[func(driver.Conn) Pipeline]

// Register makes Of return what f returns, or nil if f is nil. It returns what was registered before, for
// one who wraps the connections of a driver.
func Register(f func(driver.Conn) Pipeline) (before func(driver.Conn) Pipeline) {
	if old := registered.Swap(&f); old != nil {
		return *old
	}
	return nil
}

// Of returns the pipeline of a driver's connection, nil if it has none.
func Of(c driver.Conn) Pipeline {
	if f := registered.Load(); f != nil && *f != nil {
		return (*f)(c)
	}
	return nil
}

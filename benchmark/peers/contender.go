package main

import (
	"context"
	"errors"
	"time"
)

// A contender is a lock library with the settings that suit it best.
type contender struct {
	name     string
	settings string // printed before the figures

	open func(addrs []string) (locker, error)
	// command is the program of a contender that is not written in Go. It is
	// a worker like this program's own; see work.
	command []string
	// absent says why this contender can't run here.
	absent string

	warm       time.Duration // what it needs before a measurement, besides the usual
	ours       bool          // Belay, or the bare scripts: not a peer to be compared with
	cannotWait bool          // it has no way to wait for a lock
	plain      []string      // commands that it sends as they are, besides scripts
}

// A locker is a contender at work. It is safe for concurrent use.
type locker interface {
	// acquire takes the lock on key. While another caller has it, acquire waits until
	// ctx ends, or returns errHeld at once.
	acquire(ctx context.Context, key string, wait bool) (held, error)
	close()
}

// A held lock is released by calling it. The error also says that the lock had
// been lost before.
type held func() error

var (
	errHeld = errors.New("another caller has the lock")
	errLost = errors.New("the lock was lost while it was held")
)

package lock

import (
	"errors"
	"fmt"

	"github.com/belaygo/belay/internal/leaseend"
	"github.com/belaygo/belay/lock/internal/held"
	"github.com/belaygo/belay/lock/lockengine"
)

var (
	// ErrLost is returned when the lock was lost, or could no longer be relied on,
	// while its holder was at work. An error that matches ErrClosed, too, is no
	// failure of the lock: see there.
	ErrLost = errors.New("lock: lost")
	// ErrMaxHold is returned when the lock was held for longer than Config.MaxHold,
	// which has a default. It matches ErrLost.
	ErrMaxHold = fmt.Errorf("%w: held for too long", ErrLost)
	// ErrHeld is returned when another caller has the key. The error wraps a
	// *lockengine.HeldError, which names the holder. If a context ended the wait for the
	// key, it matches the context's error, too.
	ErrHeld = held.Err
	// ErrInvalidKey is returned when a key is not 1 to 512 bytes of valid UTF-8
	// with no braces but those of one hash tag, as in order:{42}:items.
	ErrInvalidKey = errors.New("lock: invalid key")
	// ErrClosed is returned when the Locker has been closed. A lease ends with an
	// error that matches ErrLost and ErrClosed when the context of Close ended before
	// the holder was done. The engine keeps that lock until its ttl has passed since
	// the last renewal, unless the acquire was Local.
	ErrClosed = errors.New("lock: closed")

	// How a lease ends at its deadline.
	errExpired   = fmt.Errorf("%w: %w", ErrLost, leaseend.ErrExpired)
	errUnrenewed = fmt.Errorf("%w: %w", errExpired, leaseend.ErrUnrenewed)

	// errGivenUp is how a lease ends that Close did not wait for any longer.
	errGivenUp = fmt.Errorf("%w: %w before it was released", ErrLost, ErrClosed)
)

// endedBy is the error of a wait for e's key that err cut short.
func endedBy(e *lockengine.HeldError, err error) error {
	if errors.Is(err, ErrClosed) {
		return err
	}
	last := *e // or every e would be on the heap, even of waits that end well
	return fmt.Errorf("%w: %w", &last, err)
}

// mayBeHeld reports whether an acquire that failed with err may have taken the lock
// nevertheless: see lockengine.Engine.
func mayBeHeld(err error) bool {
	refused := errors.Is(err, lockengine.ErrNotSent) || errors.Is(err, lockengine.ErrRefused) || errors.Is(err, lockengine.ErrUnusable)
	return !refused || errors.Is(err, lockengine.ErrNoAnswer)
}

// notOurs reports whether the answer to a request means that its owner does not have
// the lock any more.
func notOurs(err error) bool {
	return errors.Is(err, lockengine.ErrNotHeld) || errors.Is(err, lockengine.ErrUnusable)
}

// reason returns text, with the engine's error if that is more than "not held".
func reason(text string, err error) string {
	if errors.Is(err, lockengine.ErrUnusable) {
		return text + ": " + err.Error()
	}
	return text
}

package lock

import (
	"errors"
	"fmt"
	"time"
)

var (
	// ErrLost is returned when the lock was lost, or could no longer be relied on,
	// while its holder was at work. An error that matches ErrClosed, too, is no
	// failure of the lock: see there.
	ErrLost = errors.New("lock: lost")
	// ErrMaxHold is returned when the lock was held for longer than Config.MaxHold,
	// which has a default. It matches ErrLost.
	ErrMaxHold = fmt.Errorf("%w: held for too long", ErrLost)
	// ErrExpired is returned when the lock was not renewed in time, so that it could
	// no longer be relied on. It matches ErrLost.
	ErrExpired = fmt.Errorf("%w: not renewed in time", ErrLost)
	// ErrUnrenewed is returned when every renewal since the last success failed: the
	// engine did not answer, or rejected it. It matches ErrExpired.
	ErrUnrenewed = fmt.Errorf("%w: renewals failed", ErrExpired)
	// ErrNotHeld is returned when the owner does not have the key, and by a lease
	// that was released.
	ErrNotHeld = errors.New("lock: not held")
	// ErrNotSent is returned when the engine was not reached, or rejected the
	// request without executing any of it. A retry may succeed.
	ErrNotSent = errors.New("lock: engine not reached")
	// ErrDenied is returned when the engine rejects its client: the password is
	// wrong, a right is missing, or the client was closed. Nothing was executed, and a
	// retry would fail, too. So would other keys, unless the missing right is that to a
	// held lock's key. It matches ErrNotSent.
	ErrDenied = fmt.Errorf("%w: client rejected", ErrNotSent)
	// ErrRefused is returned when the engine does not grant the lock for now, though
	// no other owner has it, and has left nothing behind.
	ErrRefused = errors.New("lock: refused for now")
	// ErrNoAnswer is returned when the engine did not answer. The request may have
	// been executed.
	ErrNoAnswer = errors.New("lock: no answer")
	// ErrUnusable is returned when the engine cannot keep a lock under this key:
	// something else is there, or the client has no right to it. Other keys are not
	// affected. No lock was taken, and one that was held under the key is gone.
	ErrUnusable = errors.New("lock: unusable key")
	// ErrInvalidKey is returned when a key is not 1 to 512 bytes of valid UTF-8
	// with no braces but those of one hash tag, as in order:{42}:items.
	ErrInvalidKey = errors.New("lock: invalid key")
	// ErrMarked is returned by an acquire with UnlessMarked when the key is marked:
	// the work that it names is done.
	ErrMarked = errors.New("lock: marked as done")
	// ErrClosed is returned when the Locker has been closed. A lease ends with an
	// error that matches ErrLost and ErrClosed when the context of Close ended before
	// the holder was done. The engine keeps that lock until its ttl has passed since
	// the last renewal, unless the acquire was Local.
	ErrClosed = errors.New("lock: closed")

	// errGivenUp is how a lease ends that Close did not wait for any longer.
	errGivenUp = fmt.Errorf("%w: %w before it was released", ErrLost, ErrClosed)
)

// A HeldError is returned when another caller has the key. If a context ended the wait
// for it, the error matches the context's error, too.
type HeldError struct {
	Key    string
	Holder Holder // as far as it is known
	// Local is set if the other caller is in this process, in the queue of this Locker. The
	// engine got no request, and may have lost the key.
	Local bool
	// Partial is set if the engine had granted a part of the lock, and undid it. Such a
	// release frees no key, so the Locker polls, and ignores notifications of it.
	Partial bool
}

func (e *HeldError) Error() string {
	msg := fmt.Sprintf("lock: %q is held", e.Key)
	switch {
	case e.Local && e.Holder.Owner != "":
		msg += " by another caller of this process, " + e.Holder.Owner
	case e.Local:
		msg += " by another caller of this process"
	case e.Holder.Owner != "":
		msg += " by " + e.Holder.Owner
	}
	if e.Holder.Node != "" {
		msg += " on " + e.Holder.Node
	}
	if e.Holder.TTL > 0 {
		msg += fmt.Sprintf(" and expires in %v unless it is renewed", rounded(e.Holder.TTL))
	}
	return msg
}

// rounded returns d rounded for people: to seconds from 10 s on, to tenths of a second from 1 s on,
// and to milliseconds below.
func rounded(d time.Duration) time.Duration {
	switch {
	case d >= 10*time.Second:
		return d.Round(time.Second)
	case d >= time.Second:
		return d.Round(100 * time.Millisecond)
	}
	return max(d.Round(time.Millisecond), time.Millisecond)
}

// endedBy is the error of a wait that err cut short.
func (e *HeldError) endedBy(err error) error {
	if errors.Is(err, ErrClosed) {
		return err
	}
	held := *e // or every e would be on the heap, even of waits that end well
	return fmt.Errorf("%w: %w", &held, err)
}

// mayBeHeld reports whether an acquire that failed with err may have taken the lock
// nevertheless: see Engine.
func mayBeHeld(err error) bool {
	refused := errors.Is(err, ErrNotSent) || errors.Is(err, ErrRefused) || errors.Is(err, ErrUnusable)
	return !refused || errors.Is(err, ErrNoAnswer)
}

// notOurs reports whether the answer to a request means that its owner does not have
// the lock any more.
func notOurs(err error) bool { return errors.Is(err, ErrNotHeld) || errors.Is(err, ErrUnusable) }

// reason returns text, with the engine's error if that is more than "not held".
func reason(text string, err error) string {
	if errors.Is(err, ErrUnusable) {
		return text + ": " + err.Error()
	}
	return text
}

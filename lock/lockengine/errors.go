package lockengine

import (
	"errors"
	"fmt"
	"time"

	"github.com/belaygo/belay/lock/internal/held"
)

var (
	// ErrNotHeld is returned when the owner does not have the key, and by a lock.Lease
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
	// ErrMarked is returned by an acquire with UnlessMarked when the key is marked:
	// the work that it names is done.
	ErrMarked = errors.New("lock: marked as done")
)

// A HeldError is returned when another owner has the key. It matches lock.ErrHeld.
type HeldError struct {
	Key    string
	Holder Holder // as far as it is known
	// Local is set if the other caller is in this process, in the queue of the same lock.Locker. The
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

// Is reports whether target is lock.ErrHeld.
func (e *HeldError) Is(target error) bool { return target == held.Err }

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

package guard

import (
	"errors"
	"fmt"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/notify"
)

// What Do returns, matched with errors.Is. Nothing has changed in the database
// unless it says so. Errors of the operation itself, and of the database, come
// back as they are.
var (
	// ErrBusy is the first interception: another caller holds the key. It comes
	// with a *lock.HeldError, and with the context's error if that ended the
	// wait.
	ErrBusy = errors.New("guard: busy")
	// ErrDuplicate: a repeat. The row was there before this caller had the lock.
	ErrDuplicate = errors.New("guard: done before")
	// ErrStale is returned when the caller brought a version of a row that was old
	// before it had the lock. Without the lock (see DBOnly) it is also returned when
	// other callers were faster in each attempt: then the same call may succeed later.
	ErrStale = errors.New("guard: stale version")
	// ErrIntercepted is the second interception: a lock failed, and the database
	// refused the write. It comes as an *Interception.
	ErrIntercepted = errors.New("guard: lock failure intercepted")
	// ErrLost: the lock went while the operation ran; rolled back.
	ErrLost = lock.ErrLost
	// ErrUnavailable is returned when the lock could not be acquired, because its
	// engine could not be reached, did not answer or rejected the request, and
	// Config.OnUnavailable, or a write that only the lock would guard, forbids going
	// on without it. It matches a context's error only if the caller's context has
	// ended.
	ErrUnavailable = errors.New("guard: lock unavailable")
	// ErrUnknown: the outcome of the commit could not be found out. The key
	// stays locked until its ttl has passed.
	ErrUnknown = errors.New("guard: outcome unknown")
	// ErrTxControl: the operation tried to end its transaction itself.
	ErrTxControl = dbguard.ErrTxControl
	// ErrNested: Do was called inside an operation, with another key.
	ErrNested = errors.New("guard: Do inside an operation")
	// ErrClosed: the Guard, or its Locker, has been closed.
	ErrClosed = errors.New("guard: closed")
	// ErrNoDefault: SetDefault has not been called.
	ErrNoDefault = errors.New("guard: no default guard, call SetDefault first")

	errNilOp = errors.New("guard: operation is nil")
)

// An Interception is a lock failure that the database caught. It matches
// ErrIntercepted and unwraps to the *dbguard.Conflict.
type Interception struct {
	Event    notify.Event // as it was published
	Conflict *dbguard.Conflict
}

func (i *Interception) Error() string {
	return fmt.Sprintf("%v: key %q, verdict %s: %v", ErrIntercepted, i.Event.Key, i.Event.Verdict, i.Conflict)
}

// Is matches ErrIntercepted.
func (i *Interception) Is(target error) bool { return target == ErrIntercepted }

// Unwrap returns the conflict.
func (i *Interception) Unwrap() error { return i.Conflict }

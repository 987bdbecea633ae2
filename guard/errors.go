package guard

import (
	"errors"
	"fmt"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/internal/dbtx"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/notify"
)

// Errors of Do and Apply, matched with errors.Is. Unless the comment says otherwise, an
// error means that the transaction was rolled back or never began. Errors of the
// operation itself, and of the database, are returned as they are.
var (
	// ErrBusy is returned when another caller holds the key: the first interception. It
	// matches lock.ErrHeld, and the context's error if that ended the wait. It is also
	// returned when another caller has changed one of several rows under the key first,
	// in each attempt: see Retries. Then it wraps a *dbguard.ConflictError. In both cases
	// the same call may succeed later.
	ErrBusy = errors.New("guard: busy: call again, or let the call wait by guard.Wait")
	// ErrDuplicate is returned for a repeat: the row was there before this caller had
	// the lock. Of a call that serves a request it means that the request has taken effect,
	// and nothing else.
	ErrDuplicate = errors.New("guard: done before")
	// ErrExists is returned instead of ErrDuplicate by a call that serves a request, see For
	// and Once, if a row that the operation inserts was there: the request has not taken
	// effect. It wraps the *dbguard.ConflictError.
	ErrExists = errors.New("guard: row exists")
	// ErrMismatch is returned for a repeat of a request that asks for something else than the
	// request did: see once.Print. For returns it also for a request that Once has refused.
	ErrMismatch = errors.New("guard: another request has this id")
	// ErrStale is returned when the caller brought a version of a row that was old
	// before it had the lock, or that another caller changed since. Without the lock (see DBOnly) it is also returned when
	// other callers were faster in each attempt: then the same call may succeed later.
	ErrStale = errors.New("guard: stale version")
	// ErrIntercepted is returned when a lock failed and the database refused the write:
	// the second interception. The error is an *InterceptionError.
	ErrIntercepted = errors.New("guard: lock failure intercepted")
	// ErrLost is returned when the lock was lost while the operation ran, which was
	// rolled back.
	ErrLost = lock.ErrLost
	// ErrUnavailable is returned when the lock could not be acquired, because its
	// engine could not be reached, did not answer or rejected the request, and
	// Config.OnUnavailable, or a write that only the lock would guard, forbids going
	// on without it. It matches a context's error only if the caller's context has
	// ended.
	ErrUnavailable = errors.New("guard: lock unavailable")
	// ErrUnknown is returned when it could not be found out whether the COMMIT took
	// effect. The key stays locked until its ttl has passed.
	ErrUnknown = errors.New("guard: outcome unknown")
	// ErrTxControl is returned when the operation tried to end its transaction itself. It
	// comes with ErrUnknown if a procedure or a prepared statement of MySQL or MariaDB has
	// ended the transaction: what was written may be committed in part. Repeats of its request
	// get both, too, if it was committed by that.
	ErrTxControl = dbtx.ErrTxControl
	// ErrNested is returned by a Do inside an operation, with a key that the operation
	// does not hold: see Also.
	ErrNested = errors.New("guard: Do inside an operation")
	// ErrClosed is returned after the Guard or its Locker has been closed.
	ErrClosed = errors.New("guard: closed: call Close when no more operations begin")

	errNilOp     = errors.New("guard: operation is nil: pass a function")
	errNoDefault = errors.New("guard: no default guard, call SetDefault first")
)

// An InterceptionError reports a lock failure that the database caught. It matches
// ErrIntercepted and unwraps to the *dbguard.ConflictError.
type InterceptionError struct {
	Event    notify.Event // as it was published
	Conflict *dbguard.ConflictError
}

func (e *InterceptionError) Error() string {
	return fmt.Sprintf("%v: key %q, verdict %s: %v", ErrIntercepted, e.Event.Key, e.Event.Verdict, e.Conflict)
}

// Is matches ErrIntercepted.
func (e *InterceptionError) Is(target error) bool { return target == ErrIntercepted }

// Unwrap returns the conflict.
func (e *InterceptionError) Unwrap() error {
	if e.Conflict == nil { // not a nil *dbguard.ConflictError, on which errors.As would panic
		return nil
	}
	return e.Conflict
}

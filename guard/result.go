package guard

import (
	"errors"
	"slices"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/internal/dbtx"
)

// A Result says in a word what an error that Do returned means, for metrics, logs and
// traces: done (nil), busy, duplicate, stale, conflict, mismatch, intercepted, lost,
// unavailable, unknown, panic, or failed for any other.
type Result string

const (
	resultDone        Result = "done"
	resultBusy        Result = "busy"
	resultDuplicate   Result = "duplicate"
	resultStale       Result = "stale"
	resultConflict    Result = "conflict"
	resultMismatch    Result = "mismatch"
	resultIntercepted Result = "intercepted"
	resultLost        Result = "lost"
	resultUnavailable Result = "unavailable"
	resultUnknown     Result = "unknown"
	resultPanic       Result = "panic"
	resultFailed      Result = "failed"
)

// The first six are ordinary.
var results = []Result{resultDone, resultBusy, resultDuplicate, resultStale, resultConflict, resultMismatch,
	resultIntercepted, resultLost, resultUnavailable, resultUnknown, resultPanic, resultFailed}

// Ordinary reports whether the result is routine and needs no attention: done, busy,
// duplicate, stale, conflict, mismatch.
func (r Result) Ordinary() bool { return slices.Contains(results[:6], r) }

// errPanicked stands for the error of an operation that did not return.
var errPanicked = errors.New("guard: the operation panicked")

// ResultOf returns what an error that Do or Apply returned means.
func ResultOf(err error) Result {
	switch {
	case err == nil:
		return resultDone
	case errors.Is(err, ErrBusy):
		return resultBusy
	case errors.Is(err, ErrIntercepted):
		return resultIntercepted
	case errors.Is(err, ErrUnavailable):
		return resultUnavailable
	case errors.Is(err, ErrUnknown):
		return resultUnknown
	case errors.Is(err, ErrLost):
		return resultLost
	case errors.Is(err, ErrDuplicate):
		return resultDuplicate
	case errors.Is(err, ErrStale):
		return resultStale
	case errors.Is(err, ErrMismatch):
		return resultMismatch
	case errors.Is(err, errPanicked):
		return resultPanic
	}
	if _, ok := errors.AsType[*dbguard.ConflictError](err); ok {
		return resultConflict
	}
	return resultFailed
}

// Transient reports whether err, which Do or Apply returned, or a statement inside of an
// operation, is of a database that could not be reached or takes no connections or no writes for
// now, as in a failover, that gave another transaction the precedence, as after a deadlock, or
// whose pool gave no connection for half of the lock's ttl: the same call may succeed a moment
// later. It reports false for errors to which [ResultOf] gives a
// meaning of their own.
func Transient(err error) bool { return ResultOf(err) == resultFailed && dbtx.Transient(err) }

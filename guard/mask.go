package guard

import (
	"context"
	"errors"
	"slices"

	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/once"
)

// notRunError is the lock's error for an operation that has not run, so that neither
// the caller's context has ended nor a lock was lost under it: a grant that came too
// late matches ErrLost.
func notRunError(err error) error { return ownLimitError{notLostError{err}} }

// ownLimitError is an error behind which there may be the end of a context of ours.
// That must not be taken for the end of the caller's, which lives.
type ownLimitError struct{ err error }

func (e ownLimitError) Error() string { return e.err.Error() }

func (e ownLimitError) Is(target error) bool {
	return target != context.DeadlineExceeded && target != context.Canceled && errors.Is(e.err, target)
}

func (e ownLimitError) As(target any) bool { return errors.As(e.err, target) }

// notLostError is an error behind which there may be the loss of the lock. ErrLost
// says that an operation has run and is rolled back, which is not so or not known here.
type notLostError struct{ err error }

func (e notLostError) Error() string { return e.err.Error() }

func (e notLostError) Is(target error) bool {
	return !errors.Is(target, ErrLost) && errors.Is(e.err, target)
}

func (e notLostError) As(target any) bool { return errors.As(e.err, target) }

// ownError is an error of an operation behind which there may be that of another call, whose
// errors ofRequest say nothing of the request that the operation serves.
type ownError struct{ err error }

// ofRequest are the errors of a call that say something of the request which it serves: it took
// effect, or it never will.
var ofRequest = []error{ErrDuplicate, ErrExists, ErrMismatch, once.ErrRequest, lock.ErrInvalidKey}

func (e ownError) Error() string { return e.err.Error() }

func (e ownError) Is(target error) bool {
	return !slices.Contains(ofRequest, target) && errors.Is(e.err, target)
}

func (e ownError) As(target any) bool { return errors.As(e.err, target) }

package guard

import (
	"context"
	"errors"
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

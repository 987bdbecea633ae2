package guard

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/once"
)

// TestMasks: an error that says one fact matches no sentinel of another, though the cause behind it
// does. What it says, and its other causes, stay.
func TestMasks(t *testing.T) {
	cause := errors.New("cause")
	behind := func(all ...error) error {
		err := cause
		for _, e := range all {
			err = fmt.Errorf("%w: %w", e, err)
		}
		return err
	}
	ends := behind(context.DeadlineExceeded, context.Canceled)
	for name, test := range map[string]struct {
		err     error
		hides   []error
		matches []error
	}{
		"a lock that was not had": {
			notRunError(behind(lock.ErrLost, ErrBusy, context.DeadlineExceeded, context.Canceled)),
			[]error{ErrLost, lock.ErrLost, context.DeadlineExceeded, context.Canceled},
			[]error{ErrBusy, cause},
		},
		"a limit of our own":   {ownLimitError{ends}, []error{context.DeadlineExceeded, context.Canceled}, []error{cause}},
		"an unknown outcome":   {notLostError{behind(ErrLost, context.Canceled)}, []error{ErrLost}, []error{cause, context.Canceled}},
		"another call's error": {ownError{behind(ErrDuplicate, ErrExists, ErrMismatch, once.ErrRequest, lock.ErrInvalidKey, ErrLost)}, ofRequest, []error{cause, ErrLost}},
	} {
		wrapped := fmt.Errorf("at last: %w", test.err)
		for _, target := range test.hides {
			if errors.Is(wrapped, target) {
				t.Errorf("%s matches %q", name, target)
			}
		}
		for _, target := range test.matches {
			if !errors.Is(wrapped, target) {
				t.Errorf("%s does not match %q", name, target)
			}
		}
	}
}

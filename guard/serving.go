package guard

import (
	"context"
	"errors"

	"github.com/belaygo/belay/internal/claim"
)

// A serving is the request of a member, and what the crew has learnt of it. A nil one is no
// request.
type serving struct {
	claiming  claiming     // of the crew: what becomes of it there is no matter of a run alone
	claim     *claim.Claim // in the last attempt
	elsewhere bool         // the request was served under other keys
}

// serve returns the request that a call serves, as a crew has it.
func serve(k *claiming) *serving {
	if k == nil {
		return nil
	}
	return &serving{claiming: *k}
}

// renew returns the claim that the next attempt makes.
func (s *serving) renew() *claim.Claim {
	s.claim, s.elsewhere = s.claiming.row(), false
	return s.claim
}

// find reads what has refused the claim, and reports whether that was made under other keys.
func (s *serving) find(ctx context.Context) bool {
	if s == nil {
		return false
	}
	s.elsewhere = s.claiming.foreign(ctx)
	return s.elsewhere
}

// foreign reports whether the request was found to be served under other keys.
func (s *serving) foreign() bool { return s != nil && s.elsewhere }

// served returns the error of a repeat if the request is known. Whatever else goes wrong, the
// call meets it alone.
func (s *serving) served(ctx context.Context) error {
	err := s.claiming.served(ctx)
	if errors.Is(err, ErrDuplicate) || errors.Is(err, ErrMismatch) {
		return err
	}
	return nil
}

// own returns an error of the change as one that says nothing of the request.
func (s *serving) own(err error) error {
	if s == nil {
		return err
	}
	return s.claiming.own(err)
}

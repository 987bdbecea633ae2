package guard

import (
	"errors"

	"github.com/belaygo/belay/internal/leaseend"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/notify"
)

// A loss is the end of a lease that nobody has asked for.
type loss struct {
	key       string
	err       error
	inherited bool // another caller had the grant before: this call alone reports a loss that concerns them both
}

// firstLoss returns the first loss of an inherited lock, or else the first of all, nil if there
// is none. A lease that Close gave up counts only if there is no other.
func firstLoss(all []loss) *loss {
	var first *loss
	for i := range all {
		l := &all[i]
		switch {
		case first == nil:
		case errors.Is(l.err, lock.ErrClosed):
			continue
		case errors.Is(first.err, lock.ErrClosed):
		case !l.inherited || first.inherited:
			continue
		}
		first = l
	}
	return first
}

// lossOf is the kind of loss that an error of the lease states. A lease that Close gave
// up is not lost.
func lossOf(err error) notify.Loss {
	switch {
	case errors.Is(err, lock.ErrClosed):
		return ""
	case errors.Is(err, leaseend.ErrUnrenewed):
		return notify.LossUnrenewed
	case errors.Is(err, leaseend.ErrExpired):
		return notify.LossExpired
	case errors.Is(err, lock.ErrMaxHold):
		return notify.LossMaxHold
	case errors.Is(err, lock.ErrLost):
		return notify.LossGone
	}
	return ""
}

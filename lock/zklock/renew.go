package zklock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/belaygo/belay/internal/lasting"
	"github.com/belaygo/belay/lock/internal/holds"
	"github.com/belaygo/belay/lock/lockengine"
)

// errNotOurs is the error of a renewal or a release of a lock that this engine does not have.
var errNotOurs = fmt.Errorf("zklock: %w", lockengine.ErrNotHeld)

// Renew implements lockengine.Engine: one request checks that the owners' nodes exist. A majority of the
// servers agrees on it, so a leader that was replaced while it stood still can't answer, and the
// session is alive.
func (e *engine) Renew(ctx context.Context, rs []lockengine.Request, ttl time.Duration) []error {
	errs := make([]error, len(rs))
	if len(rs) == 0 {
		return errs
	}
	if err := lasting.Check("zklock", ttl); err != nil {
		return fill(errs, err)
	}
	if err := e.enter(); err != nil {
		return fill(errs, err)
	}
	defer e.running.Done()
	conn, err := e.lasting(ctx, "renew", ttl)
	if err != nil {
		return fill(errs, err)
	}
	var ours []int
	for i, r := range rs {
		h := holds.Hold{Key: r.Key, Owner: r.Owner}
		if !e.holds.Has(h) || !e.holds.Begin(h) {
			errs[i] = errNotOurs
			continue
		}
		defer e.holds.Done(h)
		ours = append(ours, i)
	}
	e.renew(ctx, conn, rs, errs, ours)
	for _, i := range ours {
		h := holds.Hold{Key: rs[i].Key, Owner: rs[i].Owner}
		switch {
		case errs[i] == nil:
			e.hold(h, conn.session, ttl)
		case errors.Is(errs[i], lockengine.ErrNotHeld):
			e.holds.Remove(h)
		}
	}
	return errs
}

func fill(errs []error, err error) []error {
	for i := range errs {
		errs[i] = err
	}
	return errs
}

// most is how many locks one request renews. By default, servers reject a request of more than a
// megabyte.
const most = 1000

// renew renews the requests with the indexes these, and sets their errors.
func (e *engine) renew(ctx context.Context, conn *conn, rs []lockengine.Request, errs []error, these []int) {
	for len(these) > 0 {
		n := min(len(these), most)
		now := append([]int(nil), these[:n]...)
		these = these[n:]
		for len(now) > 0 {
			parts := make([]part, len(now))
			for i, at := range now {
				parts[i] = check(e.ownerNode(rs[at]))
			}
			_, gone, err := doMulti(ctx, conn, "renew", parts...)
			if err != nil {
				for _, at := range now {
					errs[at] = err
				}
				break
			}
			if gone < 0 {
				break
			}
			errs[now[gone]] = errNotOurs // the others are checked again without it
			now = append(now[:gone], now[gone+1:]...)
		}
	}
}

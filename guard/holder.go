package guard

import (
	"errors"
	"fmt"
	"time"

	"github.com/belaygo/belay/internal/parallel"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/notify"
)

// holder asks the lock, if there is one, who has the key, and for the owner id if
// that is another caller. Where nobody answers, the question would only hold up the
// caller.
func (h *hold) holder() (notify.Holder, string) {
	g := h.call.guard
	if h.without != nil || g.outages.on(h.key) != nil {
		return notify.HolderUnknown, ""
	}
	ctx, cancel := detached(h.call.ctx, h.call.patience())
	defer cancel()
	now, err := inspect(ctx, g.locker.Engine(), h.key)
	switch {
	case err != nil:
		g.cfg.Logger.Warn("ask who holds the lock", "key", h.key, "error", err)
		return notify.HolderUnknown, ""
	case now.Owner == "":
		return notify.HolderNone, ""
	case now.Owner == h.lease.Grant().Owner:
		return notify.HolderSelf, ""
	}
	return notify.HolderOther, now.Owner
}

// patience is how long the lock may take to answer who has the key. A caller that goes
// on without a lock that is out of reach does not wait longer for it here either.
func (c *call) patience() time.Duration {
	if c.policy == DBOnly {
		return min(hesitation, c.guard.cfg.EndTimeout)
	}
	return c.guard.cfg.EndTimeout
}

// held asks whether the call still has each lock.
func (c *call) held() error {
	who := make([]notify.Holder, len(c.holds))
	parallel.Do(len(who), func(i int) { who[i], _ = c.holds[i].holder() })
	for i, who := range who {
		if who != notify.HolderSelf {
			return fmt.Errorf("the lock %q may have been another's meanwhile: its holder is %s", c.holds[i].key, who)
		}
	}
	return nil
}

// loss is the kind of loss that an error of the lease states. A lease that Close gave
// up is not lost.
func loss(err error) notify.Loss {
	switch {
	case errors.Is(err, lock.ErrClosed):
		return ""
	case errors.Is(err, lock.ErrUnrenewed):
		return notify.LossUnrenewed
	case errors.Is(err, lock.ErrExpired):
		return notify.LossExpired
	case errors.Is(err, lock.ErrMaxHold):
		return notify.LossMaxHold
	case errors.Is(err, lock.ErrLost):
		return notify.LossGone
	}
	return ""
}

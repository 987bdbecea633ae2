package guard

import (
	"errors"
	"fmt"
	"time"

	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/notify"
)

// holder asks the lock, if there is one, who has the key, and for the owner id if
// that is another caller. Where nobody answers, the question would only hold up the
// caller.
func (c *call) holder() (notify.Holder, string) {
	g := c.guard
	if c.without != nil || g.outages.on(c.key) != nil {
		return notify.HolderUnknown, ""
	}
	ctx, cancel := detached(c.ctx, c.patience())
	defer cancel()
	h, err := inspect(ctx, g.locker.Engine(), c.key)
	switch {
	case err != nil:
		g.cfg.Logger.Warn("ask who holds the lock", "key", c.key, "error", err)
		return notify.HolderUnknown, ""
	case h.Owner == "":
		return notify.HolderNone, ""
	case h.Owner == c.lease.Grant().Owner:
		return notify.HolderSelf, ""
	}
	return notify.HolderOther, h.Owner
}

// patience is how long the lock may take to answer who has the key. A caller that goes
// on without a lock that is out of reach does not wait longer for it here either.
func (c *call) patience() time.Duration {
	if c.guard.cfg.OnUnavailable == DBOnly {
		return min(hesitation, c.guard.cfg.EndTimeout)
	}
	return c.guard.cfg.EndTimeout
}

// held asks the lock whether the call still has it.
func (c *call) held() error {
	if who, _ := c.holder(); who != notify.HolderSelf {
		return fmt.Errorf("the lock may have been another's meanwhile: its holder is %s", who)
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

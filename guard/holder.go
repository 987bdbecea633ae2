package guard

import (
	"fmt"
	"time"

	"github.com/belaygo/belay/internal/parallel"
	"github.com/belaygo/belay/notify"
)

// holder asks the lock on key, or else that on the key that Do was given, who has it.
func (s *keySet) holder(key string) (notify.Holder, string) { return s.inspect(s.find(key)) }

// inspect asks a lock, if there is one, who has it, and for the owner id if that is another
// caller. Where nobody answers, the question would only hold up the caller.
func (s *keySet) inspect(h *hold) (notify.Holder, string) {
	l := s.layer
	if h.without != nil || l.outages.on(h.key) != nil {
		return notify.HolderUnknown, ""
	}
	ctx, cancel := detached(s.ctx, s.askTime())
	defer cancel()
	now, err := inspect(ctx, l.locker.Engine(), h.key)
	switch {
	case err != nil:
		l.cfg.Logger.Warn("ask who holds the lock", "key", h.key, "error", err)
		return notify.HolderUnknown, ""
	case now.Owner == "":
		return notify.HolderNone, ""
	case now.Owner == h.lease.Grant().Owner:
		return notify.HolderSelf, ""
	}
	return notify.HolderOther, now.Owner
}

// askTime is how long the lock may take to answer who has the key. A caller that goes
// on without a lock that is out of reach does not wait longer for it here either.
func (s *keySet) askTime() time.Duration {
	if s.plan.policy == DBOnly {
		return min(hesitation, s.layer.cfg.EndTimeout)
	}
	return s.layer.cfg.EndTimeout
}

// confirm asks whether the call still has each lock.
func (s *keySet) confirm() error {
	who := make([]notify.Holder, len(s.holds))
	parallel.Do(len(who), func(i int) { who[i], _ = s.inspect(&s.holds[i]) })
	for i, who := range who {
		if who != notify.HolderSelf {
			return fmt.Errorf("the lock %q may have been another's meanwhile: its holder is %s", s.holds[i].key, who)
		}
	}
	return nil
}

// missing asks for the locks, and returns the key of one that is gone and how it was lost, as
// far as the lease knows or the lock answers.
func (s *keySet) missing() (key string, how notify.Loss) {
	found := make([]notify.Loss, len(s.holds))
	parallel.Do(len(found), func(i int) { found[i] = s.findLoss(&s.holds[i]) })
	var which *hold
	for i, l := range found {
		h := &s.holds[i]
		if l != "" && (which == nil || h.inherited() && !which.inherited()) {
			which, how = h, l
		}
	}
	if which == nil {
		return "", ""
	}
	return which.key, how
}

// findLoss returns how a lock was lost, "" if it is not known to be.
func (s *keySet) findLoss(h *hold) notify.Loss {
	if l := lossOf(h.lease.Err()); l != "" {
		return l
	}
	if who, _ := s.inspect(h); who == notify.HolderNone || who == notify.HolderOther {
		return notify.LossGone
	}
	return lossOf(h.lease.Err()) // it may have ended while nobody answered
}

package guard

import (
	"cmp"
	"errors"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/notify"
)

// finding is what a conflict on a protected row was found to mean.
type finding struct {
	hold     *hold // on the key that protects the row
	conflict *dbguard.ConflictError
	verdict  verdict
	locked   bool // there was a lock
	lapsed   bool // but the lease was no longer believed in
	loss     notify.Loss
	relation notify.Holder
	holder   string // owner id of the other holder, if there is one
}

// find judges a conflict. It asks the lock who has the row's key.
func (c *call) find(conflict *dbguard.ConflictError) *finding {
	h := cmp.Or(c.hold(conflict.Key), c.hold(c.key))
	gone := h.lease.Err()
	f := &finding{
		hold:     h,
		conflict: conflict,
		locked:   h.without == nil,
		lapsed:   gone != nil && !errors.Is(gone, lock.ErrClosed),
		loss:     loss(gone),
	}
	f.relation, f.holder = h.holder()
	f.verdict = f.judge(conflict)
	return f
}

// judge judges any conflict of the operation by what was found about the lock.
func (f *finding) judge(c *dbguard.ConflictError) verdict {
	return judge(evidence{
		Evidence: c.Evidence,
		kind:     c.Kind,
		locked:   f.locked,
		lapsed:   f.lapsed,
		holder:   f.relation,
	})
}

// released adds what the release of the lock showed: it was found gone.
func (f *finding) released() {
	if f.unverified() {
		f.relation = notify.HolderNone
		f.verdict = f.judge(f.conflict)
	}
}

// endedWith returns the conflict that the operation ended with, and what it means
// by itself: the operation may have swallowed the one that was found.
func (f *finding) endedWith(opErr error) (*dbguard.ConflictError, verdict) {
	conflict, ok := errors.AsType[*dbguard.ConflictError](opErr)
	if cause := f.conflict.Err; !ok && f.conflict.Kind == dbguard.Stale && cause != nil && errors.Is(opErr, cause) {
		conflict, ok = f.conflict, true // it was known for one after the rollback only
	}
	if !ok {
		return nil, business
	}
	return conflict, f.judge(conflict)
}

// doneBefore reports whether what the key names is known to have taken effect.
func (f *finding) doneBefore(opErr error) bool {
	conflict, v := f.endedWith(opErr)
	return v == duplicate && !f.verdict.failure() && !conflict.Evidence.Unread
}

// unverified reports whether a repeat is one only as far as is known.
func (f *finding) unverified() bool { return f.locked && f.relation == notify.HolderUnknown }

// gone reports whether the lock was found gone when it was asked who has the key.
func (f *finding) gone() bool {
	return f.relation == notify.HolderOther || f.relation == notify.HolderNone
}

// describe adds to ev what was found.
func (f *finding) describe(ev *notify.Event) {
	c := f.conflict
	ev.Table = c.Table
	ev.Index = c.Columns
	ev.HolderAtConflict = f.relation
	ev.HolderOwner = f.holder
	ev.Loss = f.loss
	if f.loss == "" && f.gone() {
		ev.Loss = notify.LossGone
	}
	if c.Kind != dbguard.Duplicate && c.Evidence.Found {
		ev.Versions = &notify.Versions{
			Expected: int64(c.Evidence.Version),
			Found:    int64(c.Evidence.FoundVersion),
		}
	}
}

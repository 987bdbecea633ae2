package guard

import (
	"cmp"
	"errors"
	"slices"

	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/internal/conflict"
	"github.com/belaygo/belay/lock"
	"github.com/belaygo/belay/notify"
)

// finding is what a conflict on a protected row was found to mean.
type finding struct {
	key      string // that protects the row
	nested   bool   // others may run under its lock, too
	conflict *dbguard.ConflictError
	verdict  verdict
	locked   bool // there was a lock
	lapsed   bool // but the lease was no longer believed in
	loss     notify.Loss
	relation notify.Holder
	holder   string     // owner id of the other holder, if there is one
	others   []*finding // about conflicts on rows of other keys
	foreign  bool       // the row is a claim that was made under other keys
}

// gravest returns the finding that shows a failure of a lock, or else the first. It has the
// others.
func gravest(found []*finding) *finding {
	i := max(0, slices.IndexFunc(found, func(f *finding) bool { return f.verdict.failure() }))
	f := found[i]
	f.others = slices.Delete(found, i, i+1)
	return f
}

// all returns the finding, and those about rows of other keys.
func (f *finding) all() []*finding { return append([]*finding{f}, f.others...) }

// about returns the finding about the lock that a conflict is judged by.
func (f *finding) about(c *dbguard.ConflictError) *finding {
	for _, other := range f.others {
		if other.conflict.Key == c.Key && other.conflict.Subject == c.Subject {
			return other
		}
	}
	return f
}

// judge judges any conflict of the operation by what was found about the lock.
func (f *finding) judge(c *dbguard.ConflictError) verdict {
	f = f.about(c)
	seen := c.Evidence
	seen.Shared = seen.Shared || f.nested
	return judge(evidence{
		Evidence: seen,
		kind:     c.Kind,
		locked:   f.locked,
		lapsed:   f.lapsed,
		holder:   f.relation,
		foreign:  f.foreign,
	})
}

// released adds what the release showed of the locks that were found gone, and returns
// the finding that counts now.
func (f *finding) released(gone []loss) *finding {
	all := f.all()
	for _, f := range all {
		i := slices.IndexFunc(gone, func(l loss) bool { return l.key == f.key })
		if i >= 0 && (f.unverified() || f.verdict == overtaken) {
			f.relation, f.loss = notify.HolderNone, cmp.Or(f.loss, lossOf(gone[i].err))
			f.verdict = f.judge(f.conflict)
		}
	}
	return gravest(all)
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

// repeats reports whether the operation ended as a repeat.
func (f *finding) repeats(opErr error) bool {
	_, v := f.endedWith(opErr)
	return v == duplicate
}

// doneBefore reports whether what the key names is known to have taken effect: the request, if
// the call serves one, and otherwise what has made the row.
func (f *finding) doneBefore(opErr error, serves bool) bool {
	conflict, v := f.endedWith(opErr)
	about := !serves || onClaim(conflict)
	return v == duplicate && about && !f.verdict.failure() && !conflict.Evidence.Unread
}

// onClaim reports whether a conflict is on a claim.
func onClaim(c *dbguard.ConflictError) bool {
	return c != nil && c.Subject == conflict.ClaimRow
}

// unverified reports whether a repeat is one only as far as is known.
func (f *finding) unverified() bool { return f.locked && f.relation == notify.HolderUnknown }

// gone reports whether the lock was found gone when it was asked who has the key.
func (f *finding) gone() bool {
	return f.relation == notify.HolderOther || f.relation == notify.HolderNone
}

// foundGone returns the first lock that was found gone when it was asked who has its key.
func (f *finding) foundGone() *loss {
	for _, f := range f.all() {
		if f.gone() {
			return &loss{key: f.key, err: lock.ErrLost}
		}
	}
	return nil
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

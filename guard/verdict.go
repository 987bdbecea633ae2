package guard

import (
	"github.com/belaygo/belay/dbguard"
	"github.com/belaygo/belay/notify"
)

// evidence is all that a verdict rests on.
type evidence struct {
	dbguard.Evidence
	kind    dbguard.Kind
	locked  bool          // a lock was held when the operation began
	lapsed  bool          // the lease was no longer believed in
	holder  notify.Holder // who had the key after the rollback
	foreign bool          // the writer held other keys
}

type verdict int

const (
	business  verdict = iota // a conflict that says nothing about the lock
	duplicate                // a repeat of an insert
	stale                    // an update with an old version
	overtaken                // another caller was faster, perhaps under the row's other key
	overlap                  // somebody wrote the row while this caller had the lock
	lost                     // the lock was gone at the conflict
)

// judge decides what a conflict on a protected row means. The first rule that
// fits decides.
func judge(e evidence) verdict {
	switch {
	case !e.Found && !e.Changed && !e.Unread:
		return business // the row that is in the way is another one
	case e.foreign: // our lock excludes nobody who holds others
		return business
	case e.Changed && e.locked && e.Behind && !e.gone(): // the change may be from before
		return repeat(e.kind)
	case e.Changed && e.locked && (!e.Shared || e.gone()):
		return overlap
	case e.Changed && e.locked: // perhaps under the row's other key
		return overtaken
	case !e.Changed && e.Expected:
		return business
	case !e.locked:
		return repeat(e.kind)
	case e.gone():
		return lost
	}
	return repeat(e.kind)
}

// gone reports whether the lock was found gone.
func (e evidence) gone() bool {
	return e.lapsed || e.holder == notify.HolderOther || e.holder == notify.HolderNone
}

func repeat(k dbguard.Kind) verdict {
	if k == dbguard.Stale {
		return stale
	}
	return duplicate
}

// failure reports whether the verdict says that a lock failed.
func (v verdict) failure() bool { return v == overlap || v == lost }

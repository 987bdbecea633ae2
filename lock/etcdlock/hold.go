package etcdlock

import (
	"time"

	"github.com/belaygo/belay/lock/internal/holds"
)

// written is what the engine notes about a lock.
type written struct {
	revision int64 // of its last write
	restored bool  // etcd has lost writes since: the next revision may be lower
}

// next is the note after a renewal. Of two renewals that overlap, the one that ends last may know
// an older revision.
func (w written) next(revision int64) written {
	if !w.restored {
		revision = max(revision, w.revision)
	}
	return written{revision: revision}
}

// lost is the note after etcd has lost writes.
func (w written) lost() written { return written{w.revision, true} }

// hold notes that a lock was granted or renewed, and ends after ttl.
func hold(all *holds.Set[written], h holds.Hold, revision int64, ttl time.Duration) {
	all.Add(h, ttl, func(old written) (written, bool) { return old.next(revision), true })
}

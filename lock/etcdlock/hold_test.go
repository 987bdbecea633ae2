package etcdlock

import (
	"testing"
	"time"

	"github.com/belaygo/belay/lock/internal/holds"
)

// newHolds returns holds without an engine, and the revisions with which they delete.
func newHolds(t *testing.T) (*holds.Set[written], <-chan int64) {
	t.Helper()
	deleted := make(chan int64, 1)
	hs := holds.New(func(_ holds.Hold, w written) { deleted <- w.revision })
	t.Cleanup(func() { hs.Close() })
	return hs, deleted
}

// Two renewals of a lock overlap, and the one that has read it first ends last. When nobody renews
// it any more, it is deleted as it is, and not as that one has seen it.
func TestOverlappingRenewals(t *testing.T) {
	hs, deleted := newHolds(t)
	h := holds.Hold{Key: "k", Owner: "me:1"}
	hold(hs, h, 12, time.Hour)
	hold(hs, h, 10, time.Millisecond)
	if revision := <-deleted; revision != 12 {
		t.Errorf("the lock is deleted if its revision is %d, want 12", revision)
	}
}

// A lock that etcd has from a backup is renewed there with a lower revision than before. When nobody
// renews it any more, it is deleted as it is now.
func TestRenewalAfterRestore(t *testing.T) {
	hs, deleted := newHolds(t)
	h := holds.Hold{Key: "k", Owner: "me:1"}
	hold(hs, h, 12, time.Hour)
	hs.Change(written.lost)
	hold(hs, h, 5, time.Hour)
	hold(hs, h, 6, time.Hour)
	hold(hs, h, 5, time.Millisecond) // overlaps with the renewal before it
	if revision := <-deleted; revision != 6 {
		t.Errorf("the lock is deleted if its revision is %d, want 6", revision)
	}
}

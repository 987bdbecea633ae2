package lock

import (
	"container/heap"
	"time"

	"github.com/belaygo/belay/lock/lockengine"
)

// An engine that was away for a while must not be overrun when it comes back, nor
// one that is in trouble be kept busy.
const (
	// maxReleasing is how many orphans are released at a time.
	maxReleasing = 64
	// releasePause is how much later orphans are released again for each repeated
	// release that did not settle one: that is some 100 a second.
	releasePause = 10 * time.Millisecond
	// maxReleasePause bounds the sum of these pauses.
	maxReleasePause = time.Second
	// maxOrphans is how many orphans there are. Beyond it, further ones are left to
	// expire.
	maxOrphans = 10_000
)

// orphans are this Locker's unused locks that may exist in the engine. Locker.mu guards
// them.
type orphans struct {
	all       map[string]*orphan // by owner
	due       agenda[*orphan]    // those that are not being released
	pause     int64              // until when no release is repeated
	releasing int                // how many releases are on their way
	last      int64              // when the last of them expires
	dropped   int                // how many orphans were left to expire
	droppedBy int64              // when the last dropped orphan expires
}

// An orphan is an unused lock that may exist in the engine: the answer to its acquire
// or its release never came.
type orphan struct {
	request lockengine.Request
	acquire bool  // whether its acquire was not answered, rather than its release
	until   int64 // when it has expired at the latest
	again   int64 // when to release it again, or to drop it
	sending int   // releases on their way
	index   int   // in orphans.due
}

func (r *orphan) next() int64 { return r.again }

func (r *orphan) setIndex(i int) { r.index = i }

// dueNow is when to release an orphan that was not released yet, or that is in a
// caller's way.
const dueNow = 0

// add adds r, which is due at once, unless there are too many.
func (rs *orphans) add(r *orphan, now int64) {
	if now > rs.droppedBy {
		rs.dropped = 0
	}
	if len(rs.all) >= maxOrphans {
		rs.dropped++
		rs.droppedBy = r.until
		return
	}
	rs.all[r.request.Owner] = r
	rs.last = max(rs.last, r.until)
	heap.Push(&rs.due, r)
}

// next is when the watchdog must look at the orphans.
func (rs *orphans) next() int64 {
	switch {
	case len(rs.due) == 0 || rs.releasing >= maxReleasing:
		return never
	case rs.due[0].again == dueNow:
		return dueNow
	}
	return max(rs.due[0].again, rs.pause)
}

// collect drops the orphans that have expired and returns those that are due, which
// are about to be released.
func (rs *orphans) collect(now int64) (due []*orphan) {
	for rs.next() <= now {
		r := heap.Pop(&rs.due).(*orphan)
		if now > r.until {
			delete(rs.all, r.request.Owner)
			continue
		}
		rs.begin(r)
		due = append(due, r)
	}
	return due
}

// begin counts a release of r, which is about to be sent.
func (rs *orphans) begin(r *orphan) {
	r.sending++
	rs.releasing++
}

// find returns the orphan of owner, which is about to be released, or nil.
func (rs *orphans) find(owner string) *orphan {
	r := rs.all[owner]
	if r == nil {
		return nil
	}
	if r.sending == 0 {
		heap.Remove(&rs.due, r.index)
		r.again = dueNow
	}
	rs.begin(r)
	return r
}

// released takes in the end of a release: it settled r, or r is to be released
// again after pause.
func (rs *orphans) released(r *orphan, settled bool, now int64, pause time.Duration) {
	rs.releasing--
	r.sending--
	switch {
	case rs.all[r.request.Owner] != r: // another release has settled it
		return
	case settled:
		delete(rs.all, r.request.Owner)
		return
	}
	if r.again != dueNow { // new orphans, and callers, do not delay the repeats
		rs.pause = min(max(rs.pause, now)+int64(releasePause), now+int64(maxReleasePause))
	}
	if r.sending == 0 {
		r.again = min(now+int64(pause), r.until+1)
		heap.Push(&rs.due, r)
	}
}

package lock

import (
	"container/heap"
	"time"
)

// An engine that was away for a while must not be overrun when it comes back, nor
// one that is in trouble be kept busy.
const (
	// maxReleasing is how many retired holds are released at a time.
	maxReleasing = 64
	// releasePause is how much later retired holds are released again for each
	// repeated release that did not settle one: that is some 100 a second.
	releasePause = 10 * time.Millisecond
	// maxReleasePause bounds the sum of these pauses.
	maxReleasePause = time.Second
	// maxRetired is how many retired holds there are. Beyond it, further holds are
	// left to expire.
	maxRetired = 10_000
)

// retired are the holds that nobody uses any more and that may exist in the
// engine. Locker.mu guards them.
type retired struct {
	all       map[string]*retiree // by owner
	due       retireeHeap         // those that are not being released
	pause     int64               // until when none is released again
	releasing int                 // how many releases are on their way
	last      int64               // when the last of them expires
	dropped   int                 // how many holds were left to expire
	droppedBy int64               // when the last of those expires
}

// A retiree is a hold that nobody uses any more and that may exist in the
// engine: the answer to its acquire or its release never came.
type retiree struct {
	hold    Hold
	acquire bool  // its acquire is what was not answered
	until   int64 // by then it has expired
	next    int64 // when to release it again, or to drop it
	sending int   // releases on their way
	index   int   // in retired.due
}

// atOnce is when to release a hold that was not released yet, or that is in a
// caller's way.
const atOnce = 0

// add adds r, which is due at once, unless there are too many.
func (rs *retired) add(r *retiree, now int64) {
	if now > rs.droppedBy {
		rs.dropped = 0
	}
	if len(rs.all) >= maxRetired {
		rs.dropped++
		rs.droppedBy = r.until
		return
	}
	rs.all[r.hold.Owner] = r
	rs.last = max(rs.last, r.until)
	heap.Push(&rs.due, r)
}

// next is when the watchdog must look at the retired holds.
func (rs *retired) next() int64 {
	switch {
	case len(rs.due) == 0 || rs.releasing >= maxReleasing:
		return never
	case rs.due[0].next == atOnce:
		return atOnce
	}
	return max(rs.due[0].next, rs.pause)
}

// collect drops the holds that have expired and returns those that are due, which
// are about to be released.
func (rs *retired) collect(now int64) (due []*retiree) {
	for rs.next() <= now {
		r := heap.Pop(&rs.due).(*retiree)
		if now > r.until {
			delete(rs.all, r.hold.Owner)
			continue
		}
		r.sending++
		rs.releasing++
		due = append(due, r)
	}
	return due
}

// find returns the retired hold of owner, which is about to be released, or nil.
func (rs *retired) find(owner string) *retiree {
	r := rs.all[owner]
	if r == nil {
		return nil
	}
	if r.sending == 0 {
		heap.Remove(&rs.due, r.index)
		r.next = atOnce
	}
	r.sending++
	rs.releasing++
	return r
}

// released takes in the end of a release: it settled r, or r is to be released
// again.
func (rs *retired) released(r *retiree, settled bool, now int64, again time.Duration) {
	rs.releasing--
	r.sending--
	switch {
	case rs.all[r.hold.Owner] != r: // another release settled it meanwhile
		return
	case settled:
		delete(rs.all, r.hold.Owner)
		return
	}
	if r.next != atOnce { // new holds, and callers, don't delay the repeats
		rs.pause = min(max(rs.pause, now)+int64(releasePause), now+int64(maxReleasePause))
	}
	if r.sending == 0 {
		r.next = min(now+int64(again), r.until+1)
		heap.Push(&rs.due, r)
	}
}

// retireeHeap orders retired holds by when the watchdog must look at them next.
type retireeHeap []*retiree

func (h retireeHeap) Len() int           { return len(h) }
func (h retireeHeap) Less(i, j int) bool { return h[i].next < h[j].next }
func (h retireeHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}
func (h *retireeHeap) Push(x any) {
	r := x.(*retiree)
	r.index = len(*h)
	*h = append(*h, r)
}
func (h *retireeHeap) Pop() any {
	old := *h
	last := len(old) - 1
	r := old[last]
	old[last] = nil
	*h = old[:last]
	return r
}

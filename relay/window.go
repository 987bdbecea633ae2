package relay

import (
	"slices"

	"github.com/belaygo/belay/internal/message"
)

// A window is the rows in hand. A row is in hand from its read until its result is written, or
// until it is put back. No read returns it meanwhile. It belongs to the loop.
type window struct {
	queues map[message.Sum]*queue
	ids    [message.Lanes]map[int64]struct{}
	rows   int
	bytes  int
}

// A queue is the rows in hand of one key, but those that a courier has.
type queue struct {
	sum     message.Sum
	lane    int
	waiting []row
	busy    bool   // a courier has rows
	route   string // of the courier
	failed  bool   // a row was not accepted, and that is not written yet: nothing is sent
	stale   bool   // the lane was lost while a courier had rows
}

// ready reports whether a courier can have the rows.
func (q *queue) ready() bool { return !q.busy && !q.failed && len(q.waiting) > 0 }

func newWindow() *window {
	w := &window{queues: make(map[message.Sum]*queue)}
	for n := range w.ids {
		w.ids[n] = make(map[int64]struct{})
	}
	return w
}

// add takes a row in hand, behind the others of its key.
func (w *window) add(r row) {
	if _, known := w.ids[r.lane][r.id]; known {
		return
	}
	q := w.queues[r.sum]
	if q == nil {
		q = &queue{sum: r.sum, lane: r.lane}
		w.queues[r.sum] = q
	}
	w.ids[r.lane][r.id] = struct{}{}
	w.rows++
	w.bytes += r.size()
	q.waiting = append(q.waiting, r)
}

// release takes rows out of hand. A row that is not in hand any more is skipped: a turn that panicked,
// in a driver, may be repeated.
func (w *window) release(rows ...row) {
	for _, r := range rows {
		if _, inHand := w.ids[r.lane][r.id]; !inHand {
			continue
		}
		delete(w.ids[r.lane], r.id)
		w.rows--
		w.bytes -= r.size()
	}
}

// drop takes the waiting rows of a key out of hand.
func (w *window) drop(q *queue) {
	w.release(q.waiting...)
	q.waiting = nil
	w.forget(q)
}

// forget removes a queue that is of no more use.
func (w *window) forget(q *queue) {
	if len(q.waiting) == 0 && !q.busy && !q.failed {
		delete(w.queues, q.sum)
	}
}

// inHand returns the ids of a lane's rows.
func (w *window) inHand(lane int) []int64 {
	ids := make([]int64, 0, len(w.ids[lane]))
	for id := range w.ids[lane] {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

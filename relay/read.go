package relay

import (
	"errors"
	"time"

	"github.com/belaygo/belay/internal/fail"
	"github.com/belaygo/belay/internal/message"
)

// Rows that a read asks for of one lane.
const (
	minWant = 16
	maxWant = 256
)

// readTime is how long the reads of a turn take before it goes on with what else is due.
const readTime = 200 * time.Millisecond

// read takes rows in hand, as far as there is room.
func (l *loop) read() error {
	began := time.Now()
	together, alone := l.pace.due(l.lanes.readable())
	l.more = false
	l.schedule(began)
	var errs []error
	for _, lane := range alone { // first, or the others could fill all room
		if time.Since(began) > readTime {
			l.more = true
			break
		}
		errs = append(errs, l.readLanes([]int{lane}))
	}
	return errors.Join(append(errs, l.readLanes(together))...)
}

// readLanes takes rows of some lanes in hand, and makes sure that no promoted replica lacks them.
func (l *loop) readLanes(lanes []int) error {
	began := time.Now()
	wants := l.plan(lanes)
	if len(wants) == 0 {
		return nil
	}
	ctx, cancel := l.limited()
	defer cancel()
	rows, cut, err := l.table.read(ctx, wants, l.cfg.limits.bytes-l.window.bytes)
	l.expect(rows, err)
	l.pace.record(lanesOf(wants), time.Since(began), l.cfg.limits.slowRead)
	if err != nil || len(rows) == 0 {
		return err
	}
	if err := l.table.beat(ctx, l.lanes.lease); err != nil {
		return err
	}
	fail.Point("relay/read")
	l.worked = began
	l.schedule(began)
	l.take(rows, wants, cut)
	return nil
}

// expect notes how large the rows of the next read may be: what does not fit would be read for
// nothing. After an error it expects the largest.
func (l *loop) expect(rows []row, err error) {
	size := 0
	for _, r := range rows {
		size += r.size()
	}
	switch {
	case err != nil:
		l.rowSize = message.MaxBody
	case len(rows) > 0:
		l.rowSize = max(size/len(rows), l.rowSize/4)
	}
}

// take takes rows in hand that were read.
func (l *loop) take(rows []row, wants []want, cut bool) {
	got := make(map[int]int, len(wants))
	for _, r := range rows {
		got[r.lane]++
		l.window.add(r)
	}
	l.more = l.more || cut
	for _, w := range wants {
		full := got[w.lane] >= w.limit
		l.more = l.more || full
		l.wants[w.lane] = minWant
		if full {
			l.wants[w.lane] = min(2*w.limit, maxWant)
		}
	}
}

func (l *loop) schedule(began time.Time) {
	poll := l.cfg.limits.idlePoll
	if time.Since(l.worked) < l.cfg.limits.busyTime {
		poll = l.cfg.limits.busyPoll
	}
	l.nextRead = began.Add(poll)
}

// plan shares the room between lanes. If it does not last for all, the next read begins with another
// lane.
func (l *loop) plan(lanes []int) (wants []want) {
	bytes := l.cfg.limits.bytes - l.window.bytes
	if bytes <= 0 || len(lanes) == 0 {
		return nil
	}
	room := min(l.cfg.limits.rows-l.window.rows, 1+bytes/l.rowSize)
	most := maxWant
	if room < minWant*len(lanes) { // a few of each
		most = max(room/len(lanes), 1)
	}
	for n := range lanes {
		lane := lanes[(l.first+n)%len(lanes)]
		limit := min(max(l.wants[lane], minWant), maxWant-len(l.window.ids[lane]))
		if limit <= 0 { // so that a slow key leaves room for other lanes
			continue
		}
		if limit = min(limit, most, room); limit <= 0 {
			l.first += n
			break
		}
		room -= limit
		wants = append(wants, want{lane: lane, limit: limit, inHand: l.window.inHand(lane)})
	}
	return wants
}

func lanesOf(wants []want) []int {
	lanes := make([]int, len(wants))
	for n, w := range wants {
		lanes[n] = w.lane
	}
	return lanes
}

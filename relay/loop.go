package relay

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/belaygo/belay/internal/background"
	"github.com/belaygo/belay/internal/message"
	"github.com/belaygo/belay/internal/wait"
)

// Rows that a read asks for of one lane.
const (
	minWant = 16
	maxWant = 256
)

const (
	minPause    = 100 * time.Millisecond // after a failure of the database
	maxPause    = 5 * time.Second
	logInterval = 10 * time.Second // between lines about such failures
)

// A loop takes messages from the table to the couriers, and their results back. It is one
// goroutine.
type loop struct {
	cfg     Config
	table   table
	metrics *metrics
	lanes   *lanes
	window  *window
	courier courier

	ctx     context.Context // ends when the calls under way are to end
	stop    context.CancelFunc
	results chan result
	done    chan struct{}

	// Of the goroutine alone:
	couriers  int            // that have rows
	busy      map[string]int // and of each route
	sent      []row          // accepted, to be deleted
	failed    []failure      // to be parked
	apart     bool           // the last deletion has failed
	resumed   []string       // routes whose keys need not wait any more
	wants     [message.Lanes]int
	sweeps    sweeps
	rowSize   int  // expected
	first     int  // the lane to begin the next read with
	more      bool // the last read has left rows
	outages   map[string]*outage
	accepted  map[string]int64 // messages, of each route
	nextRead  time.Time
	nextRenew time.Time
	nextClean time.Time    // of parked keys
	purged    bool         // the rows of dead relays
	worked    time.Time    // when a read last found rows
	backoff   wait.Backoff // after a failure of the database
	pausing   time.Time    // no statements until then
	logged    time.Time    // the last failure at level warn
}

func (l *loop) run() {
	defer close(l.done)
	defer l.stop()
	for l.courier.closing.Err() == nil {
		l.collect()
		if !time.Now().Before(l.pausing) {
			l.check(background.Do(l.cfg.Logger, "relay messages", l.turn))
		}
		l.dispatch()
		l.wait()
	}
	l.finish()
}

// check pauses after a failure of the database. The couriers go on.
func (l *loop) check(err error) {
	if err == nil {
		l.backoff.Reset()
		return
	}
	delay := l.backoff.Next()
	l.pausing = time.Now().Add(delay)
	level := slog.LevelWarn
	if time.Since(l.logged) < logInterval {
		level = slog.LevelDebug
	} else {
		l.logged = time.Now()
	}
	l.cfg.Logger.Log(l.ctx, level, "messages are not relayed", "error", err, "retry_in", delay)
}

// turn renews, writes and reads what is due. Lanes are renewed, and messages read, though a write fails:
// others would take the lanes, send their messages again, and fail likewise.
func (l *loop) turn() error {
	if now := time.Now(); !now.Before(l.nextRenew) {
		if err := l.renew(); err != nil {
			return fmt.Errorf("renew the lanes: %w", err)
		}
		l.nextRenew = now.Add(l.lanes.lease / 6)
	}
	l.shed()
	written := l.write()
	if written != nil {
		written = fmt.Errorf("write the results of messages: %w", written)
	}
	if !time.Now().Before(l.nextClean) {
		if err := l.clean(); err != nil {
			return errors.Join(written, fmt.Errorf("unpark keys: %w", err))
		}
	}
	if !time.Now().Before(l.nextRead) || l.more {
		if err := l.read(); err != nil {
			return errors.Join(written, fmt.Errorf("read messages: %w", err))
		}
	}
	return written
}

// limited bounds a statement. It ends with the drain of Close, not with its beginning.
func (l *loop) limited() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(l.ctx), l.cfg.limits.writeTimeout)
}

// write writes the results. Rows stay in hand until that has succeeded. A key is free again after
// its failure is written: no read returns its rows before.
func (l *loop) write() error {
	ctx, cancel := l.limited()
	defer cancel()
	return errors.Join(l.remove(ctx), l.park(ctx))
}

// remove deletes the rows that were accepted. After a failure it deletes them one by one: somebody may
// hold the lock of one.
func (l *loop) remove(ctx context.Context) error {
	for len(l.sent) > 0 {
		n := len(l.sent)
		if l.apart {
			n = 1
		}
		if err := l.table.remove(ctx, l.sent[:n]); err != nil {
			l.apart = true
			l.sent = append(l.sent[1:], l.sent[0]) // the next try begins with the others
			return err
		}
		for _, r := range l.sent[:n] {
			l.window.release(r)
			if r.parked {
				l.nextClean = time.Time{}
			}
		}
		l.sent = l.sent[n:]
	}
	l.apart, l.sent = false, nil
	return nil
}

func (l *loop) park(ctx context.Context) error {
	if len(l.failed) == 0 {
		return nil
	}
	if err := l.table.park(ctx, l.failed); err != nil {
		return err
	}
	for _, f := range l.failed {
		l.window.release(f.row)
		q := l.window.queues[f.sum]
		q.failed = false
		l.putBack(q)
	}
	l.failed = nil
	return nil
}

// cleanPause is the time between two looks for keys that need not be parked any more.
const cleanPause = time.Second

// clean unparks keys, and deletes what dead relays have left.
func (l *loop) clean() error {
	began := time.Now()
	if lanes := l.lanes.readable(); len(lanes) > 0 {
		ctx, cancel := l.limited()
		defer cancel()
		for ; len(l.resumed) > 0; l.resumed = l.resumed[1:] {
			if err := l.table.hasten(ctx, lanes, unavailable(l.resumed[0])); err != nil {
				return err
			}
			for _, lane := range lanes {
				l.sweeps.hasten(lane)
			}
		}
		if !l.purged {
			if err := l.table.purge(ctx); err != nil {
				return err
			}
			l.purged = true
		}
		changed, err := l.table.unpark(ctx, lanes)
		if err != nil {
			return err
		}
		for _, lane := range changed {
			l.sweeps.forget(lane)
		}
	}
	l.nextClean = time.Now().Add(max(cleanPause, sweepPause*time.Since(began)))
	return nil
}

// putBack takes the waiting rows of a key out of hand. Only a sweep finds them again.
func (l *loop) putBack(q *queue) {
	if len(q.waiting) > 0 {
		l.sweeps.forget(q.lane)
	}
	l.window.drop(q)
}

func (l *loop) renew() error {
	ctx, cancel := l.limited()
	defer cancel()
	err := l.lanes.renew(ctx, l.lose)
	l.leave()
	for n := range l.lanes.leaving {
		if l.lanes.leaving[n] && len(l.window.ids[n]) == 0 {
			err = errors.Join(err, l.lanes.give(ctx, n))
		}
	}
	l.metrics.lanes.Set(float64(len(l.lanes.readable())))
	return err
}

// lose puts back the rows of a lane that this relay does not have.
func (l *loop) lose(lane int) {
	if len(l.window.ids[lane]) == 0 {
		return
	}
	for _, q := range l.window.queues {
		if q.lane != lane {
			continue
		}
		if q.busy && !q.stale {
			q.stale = true
			l.lanes.stale[lane]++
		}
		l.putBack(q)
	}
}

// leave puts back the rows of lanes that are to be given up, but those under way.
func (l *loop) leave() {
	for _, q := range l.window.queues {
		if l.lanes.leaving[q.lane] {
			l.putBack(q)
		}
	}
}

// read takes rows in hand, as far as there is room, and makes sure that no promoted replica lacks
// them.
func (l *loop) read() error {
	began := time.Now()
	wants := l.plan()
	l.more = false
	l.schedule(began)
	if len(wants) == 0 {
		return nil
	}
	ctx, cancel := l.limited()
	defer cancel()
	var ends map[int]int64
	if slices.ContainsFunc(wants, func(w want) bool { return l.sweeps[w.lane].slow }) {
		ends = make(map[int]int64, len(wants))
	}
	rows, cut, err := l.table.read(ctx, wants, l.cfg.limits.bytes-l.window.bytes, ends)
	l.expect(rows, err)
	if err != nil {
		return err
	}
	for _, w := range wants {
		if !w.on {
			l.sweeps.ended(w.lane, time.Since(began), l.cfg.limits.slowSweep)
		}
	}
	if len(rows) > 0 {
		if err := l.table.beat(ctx, l.lanes.lease); err != nil {
			return err
		}
		l.worked = began
		l.schedule(began)
	}
	l.take(rows, wants, ends, cut)
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

// take takes rows in hand that were read, and notes what was seen of each lane.
func (l *loop) take(rows []row, wants []want, ends map[int]int64, cut bool) {
	got, last := make(map[int]int, len(wants)), make(map[int]int64, len(wants))
	for _, r := range rows {
		got[r.lane]++
		last[r.lane] = r.id
		l.window.add(r)
	}
	l.more = cut
	for _, w := range wants {
		full := got[w.lane] >= w.limit
		l.more = l.more || full
		l.wants[w.lane] = minWant
		if full {
			l.wants[w.lane] = min(2*w.limit, maxWant)
		}
		switch term := l.lanes.terms[w.lane].Load(); {
		case cut:
			l.sweeps.forget(w.lane)
			l.sweeps.hasten(w.lane)
		case ends == nil:
			l.sweeps.forget(w.lane)
		case full:
			l.sweeps.saw(w.lane, last[w.lane], term)
		default:
			l.sweeps.saw(w.lane, max(w.after, ends[w.lane], last[w.lane]), term)
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

// plan shares the room between the lanes. If it does not last for all, the next read begins with
// another lane.
func (l *loop) plan() (wants []want) {
	bytes := l.cfg.limits.bytes - l.window.bytes
	if bytes <= 0 {
		return nil
	}
	room := min(l.cfg.limits.rows-l.window.rows, 1+bytes/l.rowSize)
	mine := l.lanes.readable()
	for n := range mine {
		lane := mine[(l.first+n)%len(mine)]
		limit := min(max(l.wants[lane], minWant), maxWant-len(l.window.ids[lane]))
		if limit <= 0 { // so that a slow key leaves room for other lanes
			continue
		}
		if limit = min(limit, room); limit <= 0 {
			l.first = (l.first + n) % len(mine)
			break
		}
		w := want{lane: lane, limit: limit, inHand: l.window.inHand(lane)}
		if !l.sweeps.due(lane) {
			if w.after, w.on = l.sweeps.seen(lane, l.lanes.terms[lane].Load()); !w.on {
				continue
			}
		}
		room -= limit
		wants = append(wants, w)
	}
	return wants
}

// dispatch gives the rows of idle keys to couriers.
func (l *loop) dispatch() {
	if l.courier.closing.Err() != nil {
		return
	}
	for _, q := range l.window.queues {
		if !q.ready() || !l.lanes.has(q.lane) || l.suspended(q.waiting[0].msg.Topic) > 0 {
			continue
		}
		route, _ := routeOf(l.courier.routes, q.waiting[0].msg.Topic)
		if l.busy[route.Topic] == l.cfg.limits.couriers { // a slow destination leaves the others theirs
			continue
		}
		rows := q.waiting
		q.waiting, q.busy, q.route = nil, true, route.Topic
		l.couriers++
		l.busy[route.Topic]++
		term := l.lanes.terms[q.lane].Load()
		go l.courier.carry(l.ctx, rows, term)
	}
}

// collect handles the results that are there.
func (l *loop) collect() {
	for {
		select {
		case r := <-l.results:
			l.handle(r)
		default:
			return
		}
	}
}

func (l *loop) handle(r result) {
	q := l.window.queues[r.row.sum]
	rest := r.rest
	if r.tried {
		switch {
		case r.err == nil:
			l.metrics.sent.Inc()
			l.sent = append(l.sent, r.row)
			l.resume(r.row.msg.Topic)
		case errors.Is(r.err, ErrUnavailable) && !l.blames(&r.row):
			l.suspend(r.row.msg.Topic, r.err)
			rest = append([]row{r.row}, rest...)
		case l.ctx.Err() != nil: // Close has ended the call
			rest = append([]row{r.row}, rest...)
		default:
			l.failed = append(l.failed, l.judge(r.row, r.err))
			q.failed = true
		}
	}
	if r.last {
		l.end(q, rest)
	}
}

// end puts the rest of a courier's rows before those that were read since.
func (l *loop) end(q *queue, rest []row) {
	l.couriers--
	l.busy[q.route]--
	q.busy = false
	q.waiting = append(slices.Clip(rest), q.waiting...)
	if q.stale {
		q.stale = false
		l.lanes.stale[q.lane]--
		l.putBack(q)
		return
	}
	l.window.forget(q)
}

// wait waits until there is something to do. Results are handled meanwhile.
func (l *loop) wait() {
	timer := time.NewTimer(l.rest())
	defer timer.Stop()
	for {
		select {
		case r := <-l.results:
			l.handle(r)
			if r.last {
				l.dispatch()
			}
		case <-timer.C:
			return
		case <-l.courier.closing.Done():
			return
		}
		switch {
		case l.couriers == 0 && l.more && !time.Now().Before(l.pausing):
			return
		case len(l.sent)+len(l.failed) >= l.cfg.limits.couriers && !time.Now().Before(l.pausing):
			return
		}
	}
}

// rest returns how long there is nothing to do, if no result comes.
func (l *loop) rest() time.Duration {
	next := l.nextRead
	if l.nextRenew.Before(next) {
		next = l.nextRenew
	}
	if l.more && l.couriers == 0 {
		next = time.Now()
	}
	if next.Before(l.pausing) {
		next = l.pausing
	}
	rest := max(time.Until(next), 0)
	for _, o := range l.outages {
		if left := time.Until(o.until); left > 0 {
			rest = min(rest, left)
		}
	}
	return rest
}

// finish waits for the couriers, writes their results, and gives the lanes back. Until then it keeps
// them: others would send the messages that are under way.
func (l *loop) finish() {
	renew := time.NewTicker(l.lanes.lease / 6)
	defer renew.Stop()
	for l.couriers > 0 {
		select {
		case r := <-l.results:
			l.handle(r)
		case <-renew.C:
			l.check(background.Do(l.cfg.Logger, "renew lanes", func() error {
				ctx, cancel := l.limited()
				defer cancel()
				_, _, err := l.lanes.keep(ctx, l.lose)
				return err
			}))
		}
	}
	err := background.Do(l.cfg.Logger, "end the relay", func() error {
		written := l.write()
		ctx, cancel := l.limited()
		defer cancel()
		return errors.Join(written, l.lanes.close(ctx))
	})
	if err != nil {
		l.cfg.Logger.Warn("relay has not given back its lanes; others take them when their leases end", "error", err)
	}
}

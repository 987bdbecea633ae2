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
	pace      pace
	rowSize   int  // expected
	first     int  // the lane to begin the next read with
	more      bool // the last read has left rows
	outages   map[string]*outage
	accepted  map[string]int64 // messages, of each route
	nextRead  time.Time
	nextRenew time.Time
	nextClean time.Time    // of parked keys that are so no more
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
	errs := []error{named("write the results of messages", l.write())}
	if !time.Now().Before(l.nextClean) {
		errs = append(errs, named("unpark keys", l.clean()))
	}
	if !time.Now().Before(l.nextRead) || l.more {
		errs = append(errs, named("read messages", l.read()))
	}
	return errors.Join(errs...)
}

func named(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}

// limited bounds a statement. It ends with the drain of Close, not with its beginning.
func (l *loop) limited() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(l.ctx), l.cfg.limits.writeTimeout)
}

// write writes the results. Rows stay in hand until that has succeeded, and a key is not sent before
// its failure is written.
func (l *loop) write() error { return errors.Join(l.remove(), l.park()) }

// remove deletes the rows that were accepted. After a failure it deletes them one by one: somebody may
// hold the lock of one.
func (l *loop) remove() error {
	for len(l.sent) > 0 {
		if l.apart {
			return l.removeApart()
		}
		if err := l.removeRows(l.cfg.limits.writeTimeout, l.sent); err != nil {
			l.apart = true
			return err
		}
		l.sent = nil
	}
	return nil
}

// maxLocked is how many rows that can't be deleted a turn meets.
const maxLocked = 3

// removeApart deletes rows one by one, and goes on behind some that can't be deleted.
func (l *loop) removeApart() error {
	var errs []error
	rows := l.sent
	for len(rows) > 0 && len(errs) < maxLocked {
		r := rows[0]
		rows = rows[1:]
		if err := l.removeRows(l.cfg.limits.writeTimeout/maxLocked, []row{r}); err != nil {
			errs = append(errs, err)
			rows = append(rows, r) // the next turn begins with the others
			if len(errs) == len(rows) {
				break
			}
		}
	}
	l.sent, l.apart = rows, len(errs) > 0
	return errors.Join(errs...)
}

func (l *loop) removeRows(limit time.Duration, rows []row) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(l.ctx), limit)
	defer cancel()
	if err := l.table.remove(ctx, rows); err != nil {
		return err
	}
	l.window.release(rows...)
	if err := l.unpark(ctx, rows); err != nil {
		l.cfg.Logger.Debug("keys are still parked", "error", err) // clean unparks them
	}
	return nil
}

// unpark ends what parks keys in the names of rows that were deleted. What it leaves, clean ends.
func (l *loop) unpark(ctx context.Context, gone []row) error {
	var keys []parked
	for _, r := range gone {
		if r.parked {
			keys = append(keys, parked{r.sum, r.msg.ID})
		}
	}
	for part := range slices.Chunk(keys, maxParked) {
		if err := l.table.unpark(ctx, part); err != nil {
			return err
		}
	}
	return nil
}

func (l *loop) park() error {
	for len(l.failed) > 0 {
		ctx, cancel := l.limited()
		part := l.failed[:min(len(l.failed), maxParked)]
		err := l.table.park(ctx, part)
		cancel()
		if err != nil {
			return err
		}
		for _, f := range part {
			l.window.release(f.row)
			q := l.window.queues[f.sum]
			q.failed = false
			l.window.drop(q)
		}
		l.failed = l.failed[len(part):]
	}
	l.failed = nil
	return nil
}

// cleanPause is the time between two looks for keys that need not be parked any more.
const cleanPause = time.Second

// clean unparks keys, and deletes what dead relays have left.
func (l *loop) clean() error {
	began := time.Now()
	defer func() { l.nextClean = time.Now().Add(max(cleanPause, slowPause*time.Since(began))) }()
	lanes := l.lanes.readable()
	if len(lanes) == 0 {
		return nil
	}
	ctx, cancel := l.limited()
	defer cancel()
	err := l.table.unparkGone(ctx, lanes)
	if !l.purged && err == nil {
		err = l.table.purge(ctx)
		l.purged = err == nil
	}
	for ; len(l.resumed) > 0 && err == nil; l.resumed = l.resumed[1:] {
		err = l.table.hasten(ctx, lanes, unavailable(l.resumed[0]))
	}
	return err
}

func (l *loop) renew() error {
	ctx, cancel := l.limited()
	defer cancel()
	err := l.lanes.renew(ctx, l.lose)
	l.leave()
	for n := range l.lanes.leaving {
		if l.lanes.leaving[n].Load() && len(l.window.ids[n]) == 0 {
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
		l.window.drop(q)
	}
}

// leave puts back the rows of lanes that are to be given up, but those under way.
func (l *loop) leave() {
	for _, q := range l.window.queues {
		if l.lanes.leaving[q.lane].Load() {
			l.window.drop(q)
		}
	}
}

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
	l.pace.took(lanesOf(wants), time.Since(began), l.cfg.limits.slowRead)
	if err != nil || len(rows) == 0 {
		return err
	}
	if err := l.table.beat(ctx, l.lanes.lease); err != nil {
		return err
	}
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

// dispatch gives the rows of idle keys to couriers.
func (l *loop) dispatch() {
	if l.courier.closing.Err() != nil {
		return
	}
	for _, q := range l.window.queues {
		if !q.ready() || !l.lanes.has(q.lane) || l.lanes.leaving[q.lane].Load() || l.suspended(q.waiting[0].msg.Topic) > 0 {
			continue
		}
		route, _ := routeOf(l.courier.routes, q.waiting[0].msg.Topic)
		if l.busy[route.Topic] == l.cfg.limits.couriers { // a slow destination leaves the others theirs
			continue
		}
		rows := l.batch(q.waiting, route)
		q.waiting, q.busy, q.route = q.waiting[len(rows):], true, route.Topic
		l.couriers++
		l.busy[route.Topic]++
		term := l.lanes.terms[q.lane].Load()
		go l.courier.carry(l.ctx, rows, term)
	}
}

// batch returns the first rows that go one way.
func (l *loop) batch(rows []row, way Route) []row {
	n := slices.IndexFunc(rows, func(r row) bool {
		route, _ := routeOf(l.courier.routes, r.msg.Topic)
		return route.Topic != way.Topic
	})
	if n < 0 {
		return rows
	}
	return rows[:n:n]
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
		l.window.drop(q)
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

// callEnd is how long calls have to end when their context has.
const callEnd = 500 * time.Millisecond

// keep renews the leases of lanes, and writes results.
func (l *loop) keep() error {
	ctx, cancel := l.limited()
	defer cancel()
	_, _, err := l.lanes.keep(ctx, l.lose)
	return errors.Join(err, l.write())
}

// finish waits for the couriers, writes their results, and gives the lanes back. Until then it keeps
// them: others would send the messages that are under way. A call that does not end with its context
// is not awaited.
func (l *loop) finish() {
	renew := time.NewTicker(l.lanes.lease / 6)
	defer renew.Stop()
	ended, over := l.ctx.Done(), make(<-chan time.Time)
	for wait := true; wait && l.couriers > 0; {
		select {
		case r := <-l.results:
			l.handle(r)
		case <-ended:
			ended, over = nil, time.After(callEnd)
		case <-over:
			wait = false
		case <-renew.C:
			l.check(background.Do(l.cfg.Logger, "renew lanes", l.keep))
		}
	}
	l.collect()
	err := background.Do(l.cfg.Logger, "end the relay", func() error {
		written := l.write()
		if written != nil {
			written = l.write() // one by one
		}
		ctx, cancel := l.limited()
		defer cancel()
		return errors.Join(written, l.lanes.close(ctx))
	})
	if err != nil {
		l.cfg.Logger.Warn("relay has not given back its lanes; others take them when their leases end", "error", err)
	}
}

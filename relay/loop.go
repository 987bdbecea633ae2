package relay

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/belaygo/belay/internal/background"
	"github.com/belaygo/belay/internal/message"
	"github.com/belaygo/belay/internal/wait"
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
	// reporter publishes an event for each dead letter; nil without a publisher.
	reporter *reporter

	ctx     context.Context // ends when the calls under way are to end
	stop    context.CancelFunc
	results chan result
	done    chan struct{}

	// Of the goroutine alone:
	couriers  int            // that have rows
	busy      map[string]int // and of each route
	sent      []row          // accepted, to be deleted
	failed    []failure      // to be parked
	oneByOne  bool           // the last deletion has failed
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

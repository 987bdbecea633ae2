package outbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/belaygo/belay/internal/background"
	"github.com/belaygo/belay/internal/fail"
	"github.com/belaygo/belay/internal/wait"
	"github.com/belaygo/belay/notify"
)

// A relay takes rows to the publisher. Its one goroutine sweeps the table from
// the first row to the last, over and over: it leases a batch of rows that are
// due, publishes them one by one and deletes those that were accepted. A row that fails
// is due again after a pause that grows with its attempts. When rows fail one after the
// other, the publisher is at fault: the relay itself pauses, and continues behind the
// row that failed, which so never blocks the others.
type relay struct {
	cfg     Config
	table   table
	metrics *metrics
	heart   *heart
	pacer   *pacer

	stop    context.CancelFunc
	done    chan struct{}
	drained bool  // to be read after done
	why     error // of its last pause, if nothing was published since; to be read after done

	// Of the goroutine alone:
	confirmed []row // published, to be deleted before anything else
	failures  int   // of the publisher, in a row
	refusals  refusals
	sweep     sweep
	unsure    time.Time // until when rows may be leased to this relay that it has not in hand
}

// A sweep is one way through the table. The last one, before the relay stops,
// does not regard the pauses of rows. Rows can show up behind a sweep, since ids
// are given out before commits: only one that began after the last row was
// stored has seen them all.
type sweep struct {
	last   bool
	after  int64 // it has come past this id
	failed bool  // a row was left behind
}

func startRelay(cfg Config, t table, m *metrics) *relay {
	ctx, stop := context.WithCancel(context.Background())
	r := newRelay(ctx, cfg, t, m)
	r.stop = stop
	go r.run(ctx)
	return r
}

func newRelay(ctx context.Context, cfg Config, t table, m *metrics) *relay {
	h := newHeart(cfg, t, m)
	return &relay{cfg: cfg, table: t, metrics: m, heart: h, pacer: newPacer(ctx, cfg, h), done: make(chan struct{})}
}

// close lets the relay drain the table until ctx ends, and waits for it.
func (r *relay) close(ctx context.Context) error {
	r.pacer.drain()
	select {
	case <-r.done:
	case <-ctx.Done():
		r.stop()
		select {
		case <-r.done:
		case <-time.After(time.Second): // a publisher that does not end with its context
			return fmt.Errorf("%w: %w", errNotDrained, ctx.Err())
		}
	}
	err := errNotDrained
	switch {
	case r.drained:
		return nil
	case ctx.Err() != nil:
		err = fmt.Errorf("%w: %w", err, ctx.Err())
	}
	if r.why != nil {
		err = fmt.Errorf("%w: %w", err, r.why)
	}
	return err
}

func (r *relay) run(ctx context.Context) {
	defer close(r.done)
	defer r.stop()
	for ctx.Err() == nil {
		r.heart.beat(ctx)
		if !r.sweep.last && r.pacer.isDraining() {
			r.sweep, r.pacer.last = sweep{last: true}, true
		}
		var more bool
		err := background.Do(r.cfg.Logger, "relay events", func() (err error) {
			more, err = r.pass(ctx)
			return err
		})
		switch {
		case err != nil:
			if ctx.Err() == nil {
				r.why = err
			}
			r.pacer.rest(ctx, err)
		case more:
		case !r.sweep.last:
			r.pacer.idle(ctx)
			r.sweep = sweep{}
		case r.sweep.failed:
			r.sweep = sweep{last: true}
		case !r.unsure.IsZero():
			if r.mayHaveMore(ctx) {
				r.pacer.idle(ctx)
			} else { // a lease that has just ended hid its row from this sweep, not from the next
				r.unsure = time.Time{}
			}
			r.sweep = sweep{last: true}
		default:
			r.drained = ctx.Err() == nil
			return
		}
	}
}

// pass takes one batch to the publisher. It reports whether there may be more
// rows, and returns an error when it is time to pause.
func (r *relay) pass(ctx context.Context) (more bool, err error) {
	r.pacer.leased = false
	if err := r.settle(ctx); err != nil {
		return false, err
	}
	end := time.Now().Add(r.cfg.limits.lease)
	rows, err := r.take(ctx)
	if err != nil {
		return false, fmt.Errorf("lease events: %w", err)
	}
	r.pacer.leased = true
	r.pacer.table.Reset()
	if r.failures <= 1 { // one failed publish makes no pause
		r.pacer.publisher.Reset()
	}
	for i, row := range rows {
		if ctx.Err() != nil || time.Until(end) < r.cfg.RelayTimeout {
			return true, errors.Join(r.settle(ctx), r.giveBack(ctx, rows[i:]))
		}
		fail.Point("outbox/claimed")
		r.sweep.after = row.id
		if err := r.forward(ctx, row); err != nil {
			return false, errors.Join(err, r.settle(ctx), r.giveBack(ctx, rows[i+1:]))
		}
	}
	return len(rows) >= r.cfg.limits.batchSize, r.settle(ctx)
}

func (r *relay) take(ctx context.Context) ([]row, error) {
	defer r.cfg.watch("lease", r.cfg.limits.writeTimeout)()
	ctx, cancel := context.WithTimeout(ctx, r.cfg.limits.writeTimeout)
	defer cancel()
	c := claim{after: r.sweep.after, limit: r.cfg.limits.batchSize, lease: r.cfg.limits.lease}
	if r.sweep.last {
		c.early = maxPause
	}
	rows, err := r.table.lease(ctx, c)
	r.doubt(err)
	return rows, err
}

// doubt notes that err has left rows leased, or may have: the answer to a COMMIT
// can be lost.
func (r *relay) doubt(err error) {
	if err != nil {
		r.unsure = time.Now().Add(r.cfg.limits.lease)
	}
}

// mayHaveMore reports whether rows that no sweep finds may be this relay's own.
func (r *relay) mayHaveMore(ctx context.Context) bool {
	if !time.Now().Before(r.unsure) {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, r.cfg.limits.writeTimeout)
	defer cancel()
	leased := false
	err := background.Do(r.cfg.Logger, "look for leased events", func() (err error) {
		leased, err = r.table.leased(ctx)
		return err
	})
	if err != nil {
		r.cfg.Logger.Warn("cannot tell whether events are still leased", "error", err)
	}
	return leased || err != nil
}

// forward publishes one row. It returns an error when more than this row seems to be at
// fault, or the publisher requests a pause.
func (r *relay) forward(ctx context.Context, stored row) error {
	err := r.publish(ctx, stored.body)
	switch {
	case err == nil:
		fail.Point("outbox/confirmed")
		r.metrics.published.Inc()
		r.confirmed = append(r.confirmed, stored)
		r.failures, r.why = 0, nil
		r.pacer.publisher.Reset()
		return nil
	case errors.Is(err, notify.ErrInvalidEvent):
		return r.setAside(ctx, stored, err)
	case errors.Is(err, notify.ErrRefused):
		return r.refuse(ctx, stored, err)
	}
	r.sweep.failed = true
	r.failures++
	err = fmt.Errorf("publish event %s: %w", stored.eventID, err)
	if postponeErr := r.postpone(ctx, stored, wait.After(stored.attempts, minPause, maxPause)); postponeErr != nil || r.failures > 1 || askedPause(err) > 0 {
		return errors.Join(err, postponeErr)
	}
	r.cfg.Logger.Warn("event is not relayed", "error", err, "attempts", stored.attempts+1)
	return nil
}

// publish gives the publisher its share of time.
func (r *relay) publish(ctx context.Context, body []byte) error {
	defer r.cfg.watch("publish", r.cfg.RelayTimeout)()
	ctx, cancel := context.WithTimeout(ctx, r.cfg.RelayTimeout)
	defer cancel()
	return background.Do(r.cfg.Logger, "publish an event", func() error { return send(ctx, r.cfg.Relay, body) })
}

// write changes the table, even while the relay stops. what describes the change in an
// error.
func (r *relay) write(ctx context.Context, what string, change func(context.Context) error) error {
	defer r.cfg.watch("write to the table", r.cfg.limits.writeTimeout)()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.cfg.limits.writeTimeout)
	defer cancel()
	if err := change(ctx); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// settle deletes the published rows.
func (r *relay) settle(ctx context.Context) error {
	if len(r.confirmed) == 0 {
		return nil
	}
	err := r.write(ctx, "delete published events", func(ctx context.Context) error { return r.table.remove(ctx, r.confirmed) })
	fail.Point("outbox/deleted")
	if err == nil {
		r.confirmed = nil
	}
	return err
}

// setAside leaves a row that is no event where it is, for a person to look at, or
// for a newer version that can read it.
func (r *relay) setAside(ctx context.Context, stored row, reason error) error {
	if err := r.postpone(ctx, stored, longest); err != nil {
		return err
	}
	r.metrics.unreadable.Inc()
	level := slog.LevelError
	if stored.attempts > 0 { // logged at the first attempt
		level = slog.LevelDebug
	}
	r.cfg.Logger.Log(ctx, level, "stored row is no event to this version, or to the monitor; it stays in belay_outbox", "row_id", stored.id, "error", reason)
	return nil
}

func (r *relay) postpone(ctx context.Context, stored row, delay time.Duration) error {
	err := r.write(ctx, "postpone event "+stored.eventID, func(ctx context.Context) error { return r.table.postpone(ctx, stored, delay) })
	fail.Point("outbox/postponed")
	r.doubt(err)
	return err
}

func (r *relay) giveBack(ctx context.Context, rows []row) error {
	if len(rows) == 0 {
		return nil
	}
	err := r.write(ctx, "give back events", func(ctx context.Context) error { return r.table.release(ctx, rows) })
	r.doubt(err)
	return err
}

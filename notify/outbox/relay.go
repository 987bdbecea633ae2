package outbox

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/belaygo/belay/notify"
	"github.com/belaygo/belay/notify/internal/backoff"
)

// Pauses after a failure.
const (
	minPause      = 200 * time.Millisecond
	maxPause      = 30 * time.Second
	maxDrainPause = time.Second // somebody waits in Close
)

// A relay takes rows to the publisher. Its one goroutine sweeps the table from
// the first row to the last, over and over. A row that fails is left behind and
// comes again with the next sweep, so that it never blocks those after it; the
// growing pause after each failure is for the publisher, which more often than
// not is the one to blame.
type relay struct {
	cfg     Config
	table   table
	metrics *metrics

	woken     chan struct{} // has a token when rows were stored
	draining  chan struct{} // closed: stop after a sweep without failures
	drainOnce sync.Once
	stop      context.CancelFunc
	done      chan struct{}

	// Of the goroutine alone:
	after      int64              // the sweep has come past this id
	failed     bool               // a row of this sweep was left behind
	final      bool               // this sweep began after the last row was stored
	pause      backoff.Backoff    // after a failure
	unreadable map[int64]struct{} // rows that are no event, told once
	drained    bool               // to be read after done
}

func startRelay(cfg Config, t table, m *metrics) *relay {
	ctx, stop := context.WithCancel(context.Background())
	r := &relay{
		cfg:        cfg,
		table:      t,
		metrics:    m,
		woken:      make(chan struct{}, 1),
		draining:   make(chan struct{}),
		stop:       stop,
		done:       make(chan struct{}),
		pause:      backoff.Backoff{Min: minPause, Max: maxPause},
		unreadable: map[int64]struct{}{},
	}
	go r.run(ctx)
	return r
}

func (r *relay) wake() {
	select {
	case r.woken <- struct{}{}:
	default:
	}
}

// close lets the relay drain the table until ctx ends, and waits for it.
func (r *relay) close(ctx context.Context) error {
	r.drainOnce.Do(func() { close(r.draining) })
	select {
	case <-r.done:
		return nil
	case <-ctx.Done():
	}
	r.stop()
	select {
	case <-r.done:
		if r.drained {
			return nil
		}
	case <-time.After(time.Second): // a publisher that does not heed its context
	}
	return fmt.Errorf("outbox: close: events stay stored: %w", ctx.Err())
}

func (r *relay) run(ctx context.Context) {
	defer close(r.done)
	defer r.stop()
	for ctx.Err() == nil {
		rows, err := r.read(ctx)
		for _, row := range rows {
			if ctx.Err() != nil {
				return
			}
			r.after = row.id
			if err = r.forward(ctx, row); err != nil {
				break
			}
		}
		switch {
		case err != nil:
			r.fail(ctx, err)
		case len(rows) < r.cfg.BatchSize && r.swept(ctx):
			r.drained = true
			return
		}
	}
}

func (r *relay) read(ctx context.Context) ([]row, error) {
	ctx, cancel := context.WithTimeout(ctx, r.cfg.WriteTimeout)
	defer cancel()
	rows, err := r.table.read(ctx, r.after, r.cfg.BatchSize)
	if err != nil {
		return nil, fmt.Errorf("read table: %w", err)
	}
	return rows, nil
}

// forward publishes one row and deletes it.
func (r *relay) forward(ctx context.Context, stored row) error {
	ev, err := decode(stored.body)
	if err != nil {
		r.setAside(stored.id, err)
		return nil
	}
	if err := r.publish(ctx, ev); err != nil {
		return fmt.Errorf("publish event %s: %w", ev.ID, err)
	}
	r.metrics.published.Inc()
	if err := r.remove(ctx, stored.id); err != nil {
		return err
	}
	r.pause.Reset()
	return nil
}

func (r *relay) publish(ctx context.Context, ev notify.Event) error {
	ctx, cancel := context.WithTimeout(ctx, r.cfg.RelayTimeout)
	defer cancel()
	return r.cfg.Relay.Publish(ctx, ev)
}

// remove deletes a published row, also when the relay is told to stop just now.
func (r *relay) remove(ctx context.Context, id int64) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.cfg.WriteTimeout)
	defer cancel()
	if err := r.table.remove(ctx, id); err != nil {
		return fmt.Errorf("delete published event: %w", err)
	}
	return nil
}

// setAside leaves a row that is no event where it is, for a person to look at.
func (r *relay) setAside(id int64, err error) {
	if _, told := r.unreadable[id]; told {
		return
	}
	r.unreadable[id] = struct{}{}
	r.metrics.unreadable.Inc()
	r.cfg.Logger.Error("stored row is no event; it stays in belay_outbox", "row_id", id, "error", err)
}

func (r *relay) fail(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	r.failed = true
	delay, interrupt := r.pause.Next(), r.draining
	if r.isDraining() {
		delay, interrupt = min(delay, maxDrainPause), nil
	}
	r.cfg.Logger.Warn("events are not relayed", "error", err, "retry_in", delay)
	backoff.Sleep(ctx, delay, interrupt)
}

func (r *relay) isDraining() bool {
	select {
	case <-r.draining:
		return true
	default:
		return false
	}
}

// swept ends a sweep and prepares the next. It reports whether this was the
// last. Rows can show up behind a sweep, since ids are given out before commits:
// only a sweep that began after the last row was stored has seen them all.
func (r *relay) swept(ctx context.Context) bool {
	failed, final := r.failed, r.final
	if final && !failed {
		return true
	}
	if !failed && !r.isDraining() {
		r.idle(ctx)
	}
	r.after, r.failed, r.final = 0, false, r.isDraining()
	return false
}

// idle waits until rows are stored, or may have been by others.
func (r *relay) idle(ctx context.Context) {
	timer := time.NewTimer(r.cfg.PollInterval)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.woken:
	case <-r.draining:
	case <-ctx.Done():
	}
}

package outbox

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/belaygo/belay/internal/background"
	"github.com/belaygo/belay/internal/fail"
	"github.com/belaygo/belay/internal/wait"
	"github.com/belaygo/belay/notify"
)

// A writer stores events, with simultaneous ones in one INSERT, and publishes those
// that it cannot store.
type writer struct {
	cfg     Config
	table   table
	metrics *metrics
	wake    func() // after events were stored

	turn chan struct{} // held by the goroutine that writes to the table

	mu       sync.Mutex
	open     *batch // that events may join
	closed   bool
	inflight sync.WaitGroup // calls of publish, and the functions that they left running
}

func newWriter(cfg Config, t table, m *metrics, wake func()) *writer {
	return &writer{cfg: cfg, table: t, metrics: m, wake: wake, turn: make(chan struct{}, 1)}
}

func (w *writer) publish(ctx context.Context, ev notify.Event) error {
	if !w.enter() {
		w.lose(ctx, ev, errClosed)
		return errClosed
	}
	defer w.inflight.Done()
	body, err := encode(ev)
	if err != nil {
		w.lose(ctx, ev, err)
		return fmt.Errorf("outbox: publish event: %w", err)
	}
	e := w.gather(ev, body)
	<-e.done
	if e.err != nil {
		return fmt.Errorf("outbox: publish event: %w", e.err)
	}
	return nil
}

// enter admits one call of Publish unless the outbox is closed.
func (w *writer) enter() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return false
	}
	w.inflight.Add(1)
	return true
}

// close refuses further events and waits for the calls of publish that were admitted.
func (w *writer) close(ctx context.Context) error {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	done := make(chan struct{})
	go func() {
		w.inflight.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("outbox: close: %w", ctx.Err())
	}
}

// gather lets ev join the batch that is open, or a new one.
func (w *writer) gather(ev notify.Event, body []byte) *entry {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.open != nil && w.open.bytes+len(body) > maxBytes {
		w.closeBatch()
	}
	if w.open == nil {
		b := &batch{full: make(chan struct{})}
		w.open = b
		w.inflight.Go(func() { w.flush(b) })
	}
	e := w.open.add(ev, body)
	if len(w.open.entries) == maxEntries {
		w.closeBatch()
	}
	return e
}

func (w *writer) closeBatch() {
	close(w.open.full)
	w.open = nil
}

// flush stores a batch when its time has come, and publishes the events that it cannot
// store.
func (w *writer) flush(b *batch) {
	_ = wait.Sleep(context.Background(), w.cfg.limits.gatherDelay, b.full)
	ctx, cancel := context.WithTimeout(context.Background(), w.cfg.limits.writeTimeout)
	defer cancel()
	limit := w.cfg.limits.writeTimeout
	if w.cfg.Relay != nil {
		limit = limit * 2 / 3
	}
	w.store(ctx, limit, b)

	var publishing sync.WaitGroup
	for _, e := range b.entries {
		publishing.Go(func() {
			defer close(e.done)
			if e.err != nil {
				w.publishDirectly(ctx, e)
			}
		})
	}
	publishing.Wait()
}

// store closes the batch and writes it within the limit. It leaves an error in
// each entry that is not stored.
func (w *writer) store(ctx context.Context, limit time.Duration, b *batch) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var err error
	select {
	case w.turn <- struct{}{}:
		defer func() { <-w.turn }()
	case <-ctx.Done():
		err = fmt.Errorf("wait for the table: %w", ctx.Err())
	}
	w.mu.Lock()
	if w.open == b {
		w.open = nil
	}
	w.mu.Unlock()
	if err == nil {
		err = w.insert(ctx, b.entries...)
	}
	if err != nil && len(b.entries) > 1 {
		w.storeEach(ctx, b.entries, err)
		return
	}
	for _, e := range b.entries {
		e.err = err
	}
}

// storeEach stores every entry with a separate INSERT, so that one that the database
// refuses does not fail the others. Entries for which the time is too short keep err.
func (w *writer) storeEach(ctx context.Context, entries []*entry, err error) {
	for _, e := range entries {
		e.err = err
		if ctx.Err() == nil {
			e.err = w.insert(ctx, e)
		}
	}
}

func (w *writer) insert(ctx context.Context, entries ...*entry) error {
	rows := make([]row, len(entries))
	for i, e := range entries {
		rows[i] = e.row
	}
	w.metrics.inserts.Inc()
	fail.Point("outbox/before-insert")
	err := w.within(ctx, func() error { return w.table.insert(ctx, rows...) })
	fail.Point("outbox/inserted")
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	w.metrics.stored.Add(float64(len(entries)))
	w.wake()
	return nil
}

// publishDirectly gives an entry that is not stored to the relay's publisher.
func (w *writer) publishDirectly(ctx context.Context, e *entry) {
	err := errors.New("publish directly: no relay is configured")
	if w.cfg.Relay != nil {
		err = w.within(ctx, func() error { return send(ctx, w.cfg.Relay, e.body) })
	}
	if err == nil {
		w.metrics.direct.Inc()
		w.cfg.Logger.WarnContext(ctx, "event published without being stored", "event_id", e.event.ID, "error", e.err)
		e.err = nil
		return
	}
	e.err = errors.Join(e.err, fmt.Errorf("publish directly: %w", err))
	w.lose(ctx, e.event, e.err)
}

// lose leaves an event to the log.
func (w *writer) lose(ctx context.Context, ev notify.Event, err error) {
	w.metrics.lost.Inc()
	w.cfg.Logger.ErrorContext(ctx, "event neither stored nor published", "event", ev, "error", err)
}

// within runs f, and waits for it no longer than ctx lasts: not every driver ends with
// its context, SQLite's waits for a lock regardless. A late end does no harm, because
// the event has one id on all paths. Close waits for f.
func (w *writer) within(ctx context.Context, f func() error) error {
	result := make(chan error, 1)
	w.inflight.Go(func() { result <- background.Do(w.cfg.Logger, "store or publish events", f) })
	select {
	case err := <-result:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

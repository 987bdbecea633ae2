package outbox

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/belaygo/belay/notify"
)

// Bounds of one INSERT.
const (
	maxEntries = 100
	maxBytes   = 1 << 20
)

// A batch is the events that share an INSERT. It takes events while it waits
// for its turn: one INSERT of this process runs at a time, so that a burst, or a
// slow database, means larger batches and not more connections.
type batch struct {
	entries []*entry
	bytes   int
	full    chan struct{} // closed when nothing more fits
}

// An entry is one event that becomes a row.
type entry struct {
	event notify.Event
	body  []byte

	done chan struct{}
	err  error // why it is not stored, nor published; to be read after done
}

// gather lets ev join the batch that is open, or a new one.
func (o *Outbox) gather(ev notify.Event, body []byte) *entry {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.open != nil && o.open.bytes+len(body) > maxBytes {
		o.closeBatch()
	}
	if o.open == nil {
		b := &batch{full: make(chan struct{})}
		o.open = b
		o.inflight.Go(func() { o.flush(b) })
	}
	e := o.open.add(ev, body)
	if len(o.open.entries) == maxEntries {
		o.closeBatch()
	}
	return e
}

func (o *Outbox) closeBatch() {
	close(o.open.full)
	o.open = nil
}

func (b *batch) add(ev notify.Event, body []byte) *entry {
	e := &entry{event: ev, body: body, done: make(chan struct{})}
	b.entries = append(b.entries, e)
	b.bytes += len(body)
	return e
}

// flush stores a batch when its time has come, and publishes what it cannot
// store.
func (o *Outbox) flush(b *batch) {
	timer := time.NewTimer(o.cfg.GatherDelay)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-b.full:
	}
	ctx, cancel := context.WithTimeout(context.Background(), o.cfg.WriteTimeout)
	defer cancel()
	limit := o.cfg.WriteTimeout
	if o.cfg.Relay != nil {
		limit = limit * 2 / 3
	}
	o.store(ctx, limit, b)

	var publishing sync.WaitGroup
	for _, e := range b.entries {
		publishing.Go(func() {
			defer close(e.done)
			if e.err != nil {
				o.publishDirectly(ctx, e)
			}
		})
	}
	publishing.Wait()
}

// store closes the batch and writes it within the limit. It leaves an error in
// each entry that is not stored.
func (o *Outbox) store(ctx context.Context, limit time.Duration, b *batch) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var err error
	select {
	case o.turn <- struct{}{}:
		defer func() { <-o.turn }()
	case <-ctx.Done():
		err = fmt.Errorf("wait for the table: %w", ctx.Err())
	}
	o.mu.Lock()
	if o.open == b {
		o.open = nil
	}
	o.mu.Unlock()
	if err == nil {
		err = o.insert(ctx, b.entries...)
	}
	if err != nil && len(b.entries) > 1 {
		o.storeEach(ctx, b.entries, err)
		return
	}
	for _, e := range b.entries {
		e.err = err
	}
}

// storeEach gives every entry an INSERT of its own, lest one that the database
// refuses takes the others with it. Those that there is no time for keep err.
func (o *Outbox) storeEach(ctx context.Context, entries []*entry, err error) {
	for _, e := range entries {
		e.err = err
		if ctx.Err() == nil {
			e.err = o.insert(ctx, e)
		}
	}
}

func (o *Outbox) insert(ctx context.Context, entries ...*entry) error {
	o.metrics.inserts.Inc()
	err := o.within(ctx, func() error { return o.table.insert(ctx, entries...) })
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	o.metrics.stored.Add(float64(len(entries)))
	o.wake()
	return nil
}

// publishDirectly gives an entry that is not stored to the relay's publisher.
func (o *Outbox) publishDirectly(ctx context.Context, e *entry) {
	err := errors.New("publish directly: no relay is configured")
	if o.cfg.Relay != nil {
		err = o.within(ctx, func() error { return send(ctx, o.cfg.Relay, e.body) })
	}
	if err == nil {
		o.metrics.direct.Inc()
		o.cfg.Logger.WarnContext(ctx, "event published without being stored", "event_id", e.event.ID, "error", e.err)
		e.err = nil
		return
	}
	e.err = errors.Join(e.err, fmt.Errorf("publish directly: %w", err))
	o.lose(ctx, e.event, e.err)
}

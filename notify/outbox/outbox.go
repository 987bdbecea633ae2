package outbox

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"gorm.io/gorm"

	"github.com/belaygo/belay/notify"
)

var (
	// ErrClosed is returned by Publish after Close.
	ErrClosed = errors.New("outbox: closed")
	// ErrNotDrained is matched by the errors of Close when events stay stored
	// for the next process.
	ErrNotDrained = errors.New("outbox: events stay stored")
)

// An Outbox is a notify.Publisher that stores events before it forwards them.
// It is safe for concurrent use, and a prometheus.Collector.
type Outbox struct {
	cfg     Config
	table   table
	metrics *metrics
	relay   *relay // nil without Config.Relay

	turn chan struct{} // held by whoever writes to the table

	mu       sync.Mutex
	open     *batch // that events may join
	closed   bool
	inflight sync.WaitGroup // calls of Publish, and what they left running
}

var _ notify.Publisher = (*Outbox)(nil)

// New returns an Outbox on the table belay_outbox of db, which [Migrate]
// creates, and starts its relay. It does not wait for the database. The caller
// closes the Outbox before the Relay and db.
func New(db *gorm.DB, cfg Config) (*Outbox, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	t, err := openTable(db)
	if err != nil {
		return nil, err
	}
	o := &Outbox{cfg: cfg, table: t, turn: make(chan struct{}, 1)}
	o.metrics = newMetrics(cfg.Name)
	if cfg.Relay != nil {
		o.relay = startRelay(cfg, t, o.metrics)
	}
	return o, nil
}

// Ping tells whether the table is there.
func (o *Outbox) Ping(ctx context.Context) error {
	if err := o.table.check(ctx); err != nil {
		return fmt.Errorf("outbox: read table: %w", err)
	}
	return nil
}

// Publish stores ev and returns nil once it is in the table, also when an event
// of the same id is there already, or if that fails, once the Relay has it. It
// does not heed the end of ctx, since the context of a failed operation often
// has ended; Config.WriteTimeout limits it instead. An error means that the
// event may be lost, and that the log has the whole of it.
//
// Events that come at the same time share an INSERT. Each keeps its id and its row.
func (o *Outbox) Publish(ctx context.Context, ev notify.Event) error {
	if !o.enter() {
		o.lose(ctx, ev, ErrClosed)
		return ErrClosed
	}
	defer o.inflight.Done()
	body, err := encode(ev)
	if err != nil {
		o.lose(ctx, ev, err)
		return fmt.Errorf("outbox: publish event: %w", err)
	}
	e := o.gather(ev, body)
	<-e.done
	if e.err != nil {
		return fmt.Errorf("outbox: publish event: %w", e.err)
	}
	return nil
}

// lose leaves an event to the log.
func (o *Outbox) lose(ctx context.Context, ev notify.Event, err error) {
	o.metrics.lost.Inc()
	o.cfg.Logger.ErrorContext(ctx, "event neither stored nor published", "event", ev, "error", err)
}

// enter admits one call of Publish unless the outbox is closed.
func (o *Outbox) enter() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return false
	}
	o.inflight.Add(1)
	return true
}

// within runs f, and waits for it no longer than ctx lasts: not every driver
// ends with its context, SQLite's waits for a lock regardless. What ends late does
// no harm, since the event has one id on all paths. Close waits for it.
func (o *Outbox) within(ctx context.Context, f func() error) error {
	result := make(chan error, 1)
	o.inflight.Go(func() { result <- f() })
	select {
	case err := <-result:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (o *Outbox) wake() {
	if o.relay != nil {
		o.relay.wake()
	}
}

// Close ends the outbox: Publish is refused, the relay forwards what is stored
// and stops. Rows that another relay has leased are left to that one, or to the
// next process if it has died. If ctx ends first, the rest stays stored for the
// next process and Close returns an error that matches ctx.Err() and
// ErrNotDrained; so it does when it is called again.
func (o *Outbox) Close(ctx context.Context) error {
	o.mu.Lock()
	o.closed = true
	o.mu.Unlock()
	if o.relay == nil {
		return o.finish(ctx)
	}
	finished := o.finish(ctx)
	if err := o.relay.close(ctx); err != nil {
		return err
	}
	return finished
}

// finish waits for the calls of Publish that were admitted.
func (o *Outbox) finish(ctx context.Context) error {
	done := make(chan struct{})
	go func() {
		o.inflight.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("outbox: close: %w", ctx.Err())
	}
}

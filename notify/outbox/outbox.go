package outbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"gorm.io/gorm"

	"github.com/belaygo/belay/notify"
)

// ErrClosed is returned by Publish after Close.
var ErrClosed = errors.New("outbox: closed")

// Config sets up an Outbox. The zero value is valid.
type Config struct {
	// Name tells several outboxes of one process apart in metrics. Default:
	// "outbox".
	Name string
	// Relay takes the stored events to their destination; it must return nil
	// only when they are safe there, and must return when its context ends. Nil
	// means that this process only stores, and that another one relays.
	Relay notify.Publisher
	// Logger gets warnings about the relay, and events that would be lost. Nil
	// means silent.
	Logger *slog.Logger
	// WriteTimeout limits one Publish in all. With a Relay, two thirds of it
	// are for the table, the rest for publishing directly. Default: 3s.
	WriteTimeout time.Duration
	// RelayTimeout limits the relay's publishing of one event. Default: 10s.
	RelayTimeout time.Duration
	// PollInterval is how often the relay looks for rows that this process did
	// not store. Default: 1s.
	PollInterval time.Duration
	// BatchSize is how many rows the relay reads at once. Default: 100.
	BatchSize int
}

func (c Config) withDefaults() Config {
	if c.Name == "" {
		c.Name = "outbox"
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.WriteTimeout == 0 {
		c.WriteTimeout = 3 * time.Second
	}
	if c.RelayTimeout == 0 {
		c.RelayTimeout = 10 * time.Second
	}
	if c.PollInterval == 0 {
		c.PollInterval = time.Second
	}
	if c.BatchSize == 0 {
		c.BatchSize = 100
	}
	return c
}

func (c Config) validate() error {
	switch {
	case c.WriteTimeout < 0:
		return fmt.Errorf("outbox: WriteTimeout %v is negative", c.WriteTimeout)
	case c.RelayTimeout < 0:
		return fmt.Errorf("outbox: RelayTimeout %v is negative", c.RelayTimeout)
	case c.PollInterval < 0:
		return fmt.Errorf("outbox: PollInterval %v is negative", c.PollInterval)
	case c.BatchSize < 0:
		return fmt.Errorf("outbox: BatchSize %d is negative", c.BatchSize)
	}
	return nil
}

// An Outbox is a notify.Publisher that stores events before it forwards them.
// It is safe for concurrent use, and a prometheus.Collector.
type Outbox struct {
	cfg     Config
	table   table
	metrics *metrics
	relay   *relay // nil without Config.Relay

	mu       sync.Mutex
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
	o := &Outbox{cfg: cfg, table: t}
	o.metrics = newMetrics(cfg.Name)
	if cfg.Relay != nil {
		o.relay = startRelay(cfg, t, o.metrics)
	}
	return o, nil
}

// Ping tells whether the table can be read.
func (o *Outbox) Ping(ctx context.Context) error {
	if _, err := o.table.read(ctx, 0, 1); err != nil {
		return fmt.Errorf("outbox: read table: %w", err)
	}
	return nil
}

// Publish stores ev and returns nil once it is in the table, also when an event
// of the same id is there already, or if that fails, once the Relay has it. It
// keeps the values of ctx but not its end, since the context of a failed
// operation often has ended; Config.WriteTimeout limits it instead. An error
// means that the event may be lost, and that the log has the whole of it.
func (o *Outbox) Publish(ctx context.Context, ev notify.Event) error {
	if !o.enter() {
		o.lose(ctx, ev, ErrClosed)
		return ErrClosed
	}
	defer o.inflight.Done()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), o.cfg.WriteTimeout)
	defer cancel()

	err := o.store(ctx, ev)
	if err == nil {
		o.metrics.stored.Inc()
		o.wake()
		return nil
	}
	directErr := o.publishDirectly(ctx, ev)
	if directErr == nil {
		o.metrics.direct.Inc()
		o.cfg.Logger.WarnContext(ctx, "event published without being stored", "event_id", ev.ID, "error", err)
		return nil
	}
	err = errors.Join(err, directErr)
	o.lose(ctx, ev, err)
	return fmt.Errorf("outbox: publish event: %w", err)
}

// lose leaves the event to the log.
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

func (o *Outbox) store(ctx context.Context, ev notify.Event) error {
	body, err := encode(ev)
	if err != nil {
		return err
	}
	if o.relay != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.cfg.WriteTimeout*2/3)
		defer cancel()
	}
	err = o.within(ctx, func() error { return o.table.insert(ctx, ev.ID, body) })
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return nil
}

func (o *Outbox) publishDirectly(ctx context.Context, ev notify.Event) error {
	if o.cfg.Relay == nil {
		return errors.New("publish directly: no relay is configured")
	}
	err := o.within(ctx, func() error { return o.cfg.Relay.Publish(ctx, ev) })
	if err != nil {
		return fmt.Errorf("publish directly: %w", err)
	}
	return nil
}

// within runs f, and waits for it no longer than ctx lasts: not every driver
// heeds its context, SQLite's waits for a lock regardless. What ends late does
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
// and stops. If ctx ends first, the rest stays stored for the next process and
// Close returns an error that matches ctx.Err(). Close may be called again.
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

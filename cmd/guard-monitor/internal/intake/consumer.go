package intake

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/lograte"
	"github.com/belaygo/belay/internal/rabbit"
	"github.com/belaygo/belay/internal/wait"
	"github.com/belaygo/belay/notify"
)

var (
	// ErrReject is matched by the errors of a handler that will never take the event
	// at hand: it goes to the dead letters. After any other error the handler is called
	// again.
	ErrReject = errors.New("event rejected")
	// ErrHandler is matched by what Err returns while the handler fails, which holds
	// up all that comes after.
	ErrHandler = errors.New("event is not taken")
	// ErrRunning is returned by Run of a Consumer that is running already.
	ErrRunning = errors.New("rabbitmq: consumer is running already")

	errNotRunning   = errors.New("rabbitmq: consumer is not running")
	errNotConnected = errors.New("rabbitmq: not connected yet")
)

// A Handler stores one event; raw is the message's body, which it may keep, and
// sender the user who sent it, as the broker has verified, or "". It may get an event
// several times, and recognizes it by its ID.
type Handler func(ctx context.Context, ev notify.Event, raw []byte, sender string) error

// A Consumer reads events from the monitor's queue. Its methods are safe for
// concurrent use; it is a prometheus.Collector.
type Consumer struct {
	*metrics

	cfg Config

	dialer          *rabbit.Dialer // of Run alone
	heartbeatDialer *rabbit.Dialer // of listen alone

	noBeats, unboundBeats, letters lograte.Limit // lines about messages that are not taken

	running sync.Mutex // held by Run

	mu        sync.Mutex
	err       error // why the queue is not read; nil while it is
	listening bool  // heartbeats are read
	sessions  int   // through which they were read
	dead      int   // messages in the queue of the dead letters
	counted   bool  // dead is known
}

// New returns a Consumer of the broker at url, an AMQP URL that may name several
// nodes. It does not connect: Run does.
func New(url string, cfg Config) (*Consumer, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	dialer, err := rabbit.NewDialer(url, rabbit.Config{Name: name, Timeout: cfg.dialTimeout})
	if err != nil {
		return nil, err
	}
	return &Consumer{
		cfg:             cfg,
		metrics:         newMetrics(),
		dialer:          dialer,
		heartbeatDialer: dialer.Clone(),
		err:             errNotRunning,
	}, nil
}

// Err returns nil while the queue is being read, and else why it is not: the
// handler fails, which matches ErrHandler, or there is no connection.
func (c *Consumer) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

func (c *Consumer) setErr(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = err
	c.connected.Set(0)
	if err == nil {
		c.connected.Set(1)
	}
}

// DeadLetters returns how many messages were in the queue of the dead letters when
// they were last counted, at most 15 seconds ago. known is false while the queue of
// the events is not read.
func (c *Consumer) DeadLetters() (n int, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dead, c.counted
}

func (c *Consumer) setDead(n int, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dead, c.counted = n, known
	if !known {
		c.deadLetters.Reset()
		return
	}
	c.deadLetters.WithLabelValues().Set(float64(n))
}

// Run declares the topology and gives each event to handle, one at a time, until ctx
// ends; then it disconnects and returns ctx.Err(). It reconnects for as long as it
// takes. An event is acknowledged after handle has returned nil; the package comment
// says what happens after a failure.
func (c *Consumer) Run(ctx context.Context, handle Handler) error {
	if handle == nil {
		return errors.New("rabbitmq: handle is nil")
	}
	if !c.running.TryLock() {
		return ErrRunning
	}
	defer c.running.Unlock()
	c.setErr(errNotConnected)
	defer c.setErr(errNotRunning)
	var listener sync.WaitGroup
	hearing, stop := context.WithCancel(ctx)
	defer func() { // also when handle panics
		stop()
		listener.Wait()
	}()
	if c.cfg.Heartbeat != nil {
		listener.Go(func() { c.listen(hearing) })
	}
	pause := wait.Backoff{Min: rabbit.MinPause, Max: rabbit.MaxPause}
	for {
		began := time.Now()
		handled, err := c.consume(ctx, handle)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if handled || time.Since(began) > rabbit.MaxPause {
			pause.Reset()
		}
		delay := pause.Next()
		c.setErr(fmt.Errorf("rabbitmq: %w", err))
		c.cfg.Logger.Warn("monitor queue is not read", "addr", c.dialer.Addr(), "error", err, "retry_in", delay)
		_ = wait.Sleep(ctx, delay, nil)
	}
}

// read begins to consume a queue.
func (c *Consumer) read(ch *amqp.Channel, queue string) (<-chan amqp.Delivery, error) {
	if err := ch.Qos(c.cfg.Prefetch, 0, false); err != nil {
		return nil, fmt.Errorf("set prefetch: %w", err)
	}
	messages, err := ch.Consume(queue, "", false, false, false, false, nil)
	if err != nil {
		return nil, fmt.Errorf("consume %s: %w", queue, err)
	}
	return messages, nil
}

// consume reads the queue through one session. It reports whether a message was
// dealt with, and why the session ended.
func (c *Consumer) consume(ctx context.Context, handle Handler) (handled bool, err error) {
	r := &reader{Consumer: c, handle: handle}
	s, err := c.dialer.Dial(ctx, r.subscribe)
	if err != nil {
		return false, err
	}
	defer s.Close()
	r.session = s
	c.connections.Inc()
	c.setErr(nil)
	c.cfg.Logger.Info("reading the monitor queue", "addr", c.dialer.Addr())
	err = r.run(ctx)
	return r.handled, err
}

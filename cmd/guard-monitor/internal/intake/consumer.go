package intake

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/belaygo/belay/internal/heartbeat"
	"github.com/belaygo/belay/internal/rabbit"
	"github.com/belaygo/belay/internal/wait"
	"github.com/belaygo/belay/notify"
)

// ErrReject is matched by the errors of a handler that will never take the
// event at hand: it goes to the dead letters. After any other error the handler
// is called again.
var ErrReject = errors.New("rabbitmq: event rejected")

// ErrHandler is matched by what Err returns while the handler fails, which holds
// up all that comes after.
var ErrHandler = errors.New("rabbitmq: event is not taken")

// ErrRunning is returned by Run of a Consumer that is running already.
var ErrRunning = errors.New("rabbitmq: consumer is running already")

// A Handler stores one event; raw is the message's body, which it may keep. It
// may get an event several times, and recognizes it by its ID.
type Handler func(ctx context.Context, ev notify.Event, raw []byte) error

// Config sets up a Consumer. The zero value is valid.
type Config struct {
	// Name is shown by the broker and told apart in metrics. Default:
	// "monitor".
	Name string
	// Prefetch is how many messages may wait here, unacknowledged. Default: 50.
	Prefetch int
	// Heartbeat gets the heartbeats of the instances; where several monitors
	// read, each heartbeat goes to one. It must not block, and may be called
	// while the handler runs. Nil means that they are not read.
	Heartbeat func(ctx context.Context, h heartbeat.Heartbeat)
	// DialTimeout limits one attempt to connect, with handshakes and
	// declarations. Default: 10s.
	DialTimeout time.Duration
	// TLS is used with amqps URLs. Default: the system's authorities and the
	// host's name, or what the URL's query says.
	TLS *tls.Config
	// Logger gets lost and regained connections, failures of the handler and
	// dead letters. Nil means silent.
	Logger *slog.Logger
}

// maxPrefetch is what a quorum queue allows.
const maxPrefetch = 2000

func (c Config) withDefaults() Config {
	if c.Name == "" {
		c.Name = "monitor"
	}
	if c.Prefetch == 0 {
		c.Prefetch = 50
	}
	if c.DialTimeout == 0 {
		c.DialTimeout = 10 * time.Second
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// A Consumer reads events from the monitor's queue. Its methods are safe for
// concurrent use; it is a prometheus.Collector.
type Consumer struct {
	*metrics

	cfg Config

	dialer          *rabbit.Dialer // of Run alone
	heartbeatDialer *rabbit.Dialer // of listen alone

	mu        sync.Mutex
	running   bool
	err       error // why the queue is not read; nil while it is
	listening bool  // heartbeats are read
	dead      int   // messages in the queue of the dead letters
	counted   bool  // dead is known
}

// New returns a Consumer of the broker at url, an AMQP URL that may name several
// nodes. It does not connect: Run does.
func New(url string, cfg Config) (*Consumer, error) {
	cfg = cfg.withDefaults()
	if cfg.Prefetch < 0 || cfg.Prefetch > maxPrefetch {
		return nil, fmt.Errorf("rabbitmq: Prefetch %d is outside 1 to %d", cfg.Prefetch, maxPrefetch)
	}
	dialer, err := rabbit.NewDialer(url, rabbit.Config{Name: cfg.Name, Timeout: cfg.DialTimeout, TLS: cfg.TLS})
	if err != nil {
		return nil, err
	}
	return &Consumer{
		cfg:             cfg,
		metrics:         newMetrics(cfg.Name),
		dialer:          dialer,
		heartbeatDialer: dialer.Clone(),
		err:             errNotRunning,
	}, nil
}

var (
	errNotRunning   = errors.New("rabbitmq: consumer is not running")
	errNotConnected = errors.New("rabbitmq: not connected yet")
)

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
	c.metrics.connected.Set(0)
	if err == nil {
		c.metrics.connected.Set(1)
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
		c.metrics.deadLetters.Reset()
		return
	}
	c.metrics.deadLetters.WithLabelValues().Set(float64(n))
}

// Run declares the topology and gives each event to handle, one at a time,
// until ctx ends; then it disconnects and returns ctx.Err(). It connects anew
// for as long as it takes. An event is acknowledged after handle has returned
// nil; what the package comment says of failures applies.
func (c *Consumer) Run(ctx context.Context, handle Handler) error {
	if handle == nil {
		return errors.New("rabbitmq: handle is nil")
	}
	if err := c.begin(); err != nil {
		return err
	}
	defer c.finish()
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

func (c *Consumer) begin() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running {
		return ErrRunning
	}
	c.running, c.err = true, errNotConnected
	return nil
}

func (c *Consumer) finish() {
	c.setErr(errNotRunning)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running = false
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
	c.metrics.connections.Inc()
	c.setErr(nil)
	c.cfg.Logger.Info("reading the monitor queue", "addr", c.dialer.Addr())
	err = r.run(ctx)
	return r.handled, err
}

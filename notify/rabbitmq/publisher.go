package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"sync"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/sony/gobreaker/v2"

	"github.com/belaygo/belay/internal/rabbit"
	"github.com/belaygo/belay/notify"
)

var (
	// ErrClosed is returned by a Publisher after Close.
	ErrClosed = errors.New("rabbitmq: closed")
	// ErrUnroutable is returned when the monitor's queue does not exist, or no
	// queue is bound to the exchange: no monitor has declared the topology, or
	// somebody has deleted the queue. A Publisher that has seen the queue missing
	// also returns it for a second after it finds the queue again, unless a monitor
	// reads the queue.
	ErrUnroutable = errors.New("rabbitmq: event is unroutable: no monitor has declared and bound the queue")
	// ErrBlocked means that the broker takes no messages, for lack of memory or
	// disk.
	ErrBlocked = errors.New("rabbitmq: blocked by the broker")
	// ErrRefused means that the broker, asked to take responsibility for the
	// event, said no: its queue is full, or cannot reach a majority.
	ErrRefused = errors.New("rabbitmq: refused by the broker")
	// ErrOpen means that the last publishes failed and that this one was not
	// tried: the circuit breaker is open, for a second at a time.
	ErrOpen = errors.New("rabbitmq: circuit breaker is open")
)

// A Publisher is a notify.Publisher that hands events to RabbitMQ. It is safe
// for concurrent use, and a prometheus.Collector.
type Publisher struct {
	cfg     PublisherConfig
	dialer  *rabbit.Dialer // of the supervisor alone
	metrics *publisherMetrics
	breaker *gobreaker.CircuitBreaker[struct{}]

	requests chan *request // taken by the supervisor in every state but dialling
	pings    chan ping     // the same
	stop     context.CancelFunc
	done     chan struct{}

	mu      sync.Mutex
	lastErr error // why there is no connection, if there is none
}

var (
	_ notify.Publisher          = (*Publisher)(nil)
	_ notify.RawPublisher       = (*Publisher)(nil)
	_ notify.HeartbeatPublisher = (*Publisher)(nil)
)

// A request is one message on its way through the supervisor, which answers
// each request that it has taken.
type request struct {
	ctx     context.Context
	queue   string // must exist, unless it is ""
	key     string
	message amqp.Publishing
	answer  chan error // buffered
}

// A ping waits for a connection until its context ends.
type ping struct {
	ctx       context.Context
	connected chan struct{} // closed then
}

func newRequest(ctx context.Context, queue, key string, message amqp.Publishing) *request {
	return &request{ctx: ctx, queue: queue, key: key, message: message, answer: make(chan error, 1)}
}

// NewPublisher returns a Publisher to the broker at url, an AMQP URL such as
// amqp://user:password@host:5672/vhost. Several nodes of one cluster are
// separated by commas (host1:5672,host2:5672) and tried in turn. It does not
// connect: the first Publish or Ping does. The caller closes the Publisher.
func NewPublisher(url string, cfg PublisherConfig) (*Publisher, error) {
	cfg = cfg.withDefaults()
	if cfg.Timeout < 0 {
		return nil, fmt.Errorf("rabbitmq: Timeout %v is negative", cfg.Timeout)
	}
	dialer, err := rabbit.NewDialer(url, rabbit.Config{Name: cfg.Name, Timeout: cfg.DialTimeout, TLS: cfg.TLS})
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	p := &Publisher{
		cfg:      cfg,
		dialer:   dialer,
		breaker:  newBreaker(),
		requests: make(chan *request),
		pings:    make(chan ping),
		stop:     stop,
		done:     make(chan struct{}),
	}
	p.metrics = newPublisherMetrics(cfg.Name, p.breaker.State)
	go newSupervisor(p).run(ctx)
	return p, nil
}

// Publish returns nil once the broker has found the monitor's queue, routed ev
// and confirmed it. After ErrUnroutable, ErrRefused and ErrOpen the broker has
// not taken the event; after any other error it may have: ErrBlocked and
// ErrClosed can come while the event is on its way.
func (p *Publisher) Publish(ctx context.Context, ev notify.Event) error {
	body, err := ev.MarshalJSON()
	if err != nil {
		return fmt.Errorf("rabbitmq: encode event: %w", err)
	}
	return p.PublishRaw(ctx, body)
}

// PublishRaw publishes an event as it is. Of its data it reads the verdict and the
// service only. Errors are those of Publish.
func (p *Publisher) PublishRaw(ctx context.Context, body []byte) error {
	key, message, err := newMessage(body)
	if err != nil {
		return fmt.Errorf("rabbitmq: read event: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, p.cfg.Timeout)
	defer cancel()
	err = p.guarded(newRequest(ctx, rabbit.Queue, key, message))
	p.metrics.count(err)
	if err != nil {
		return fmt.Errorf("publish event: %w", err)
	}
	return nil
}

func (p *Publisher) send(r *request) error {
	select {
	case p.requests <- r:
	case <-r.ctx.Done():
		return p.unanswered(r.ctx)
	case <-p.done:
		return ErrClosed
	}
	select {
	case err := <-r.answer:
		return err
	case <-r.ctx.Done():
		return p.unanswered(r.ctx)
	}
}

// Ping waits until there is a connection or ctx ends, which it makes an error
// that tells what the last attempt to connect came to.
func (p *Publisher) Ping(ctx context.Context) error {
	demand := ping{ctx: ctx, connected: make(chan struct{})}
	select {
	case p.pings <- demand:
	case <-ctx.Done():
		return fmt.Errorf("ping broker: %w", p.unanswered(ctx))
	case <-p.done:
		return fmt.Errorf("ping broker: %w", ErrClosed)
	}
	select {
	case <-demand.connected:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("ping broker: %w", p.unanswered(ctx))
	case <-p.done:
		return fmt.Errorf("ping broker: %w", ErrClosed)
	}
}

// unanswered is the error when ctx ended first.
func (p *Publisher) unanswered(ctx context.Context) error {
	if reason := p.reason(); reason != nil {
		return fmt.Errorf("%w (%w)", reason, ctx.Err())
	}
	return fmt.Errorf("rabbitmq: %w", ctx.Err())
}

// reason tells why there is no connection, nil if there is one.
func (p *Publisher) reason() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lastErr
}

func (p *Publisher) setLastErr(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lastErr = err
}

// Close disconnects. A Publish that is under way ends with ErrClosed, and its
// outcome is unknown. Close may be called again. It ends with ctx, or about a
// second after the call when the broker does not answer.
func (p *Publisher) Close(ctx context.Context) error {
	p.stop()
	select {
	case <-p.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("rabbitmq: close: %w", ctx.Err())
	}
}

package amqprelay

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/belaygo/belay/internal/background"
	"github.com/belaygo/belay/internal/rabbit"
	"github.com/belaygo/belay/relay"
)

var errClosed = errors.New("closed")

// A Publisher sends messages to RabbitMQ. It is safe for concurrent use.
//
// Publish returns nil once the broker has routed m to a queue and confirmed it. An error that
// matches relay.ErrUnavailable is that of the connection; the broker may have accepted m.
// One that matches relay.ErrRejected means that the broker never accepts m. After
// ErrUnroutable the broker has not accepted m.
type Publisher interface {
	relay.Publisher

	// Ping returns an error unless there is a connection.
	Ping(ctx context.Context) error
	// Close disconnects. A Publish that is under way ends with an error, and its outcome is unknown.
	// Close may be called again. It ends with ctx, or about a second after the call when the broker
	// does not answer.
	Close(ctx context.Context) error
}

type publisher struct {
	cfg     Config
	life    context.Context // ends with Close
	stop    context.CancelFunc
	maxSize atomic.Int64 // of a body, as far as the broker has named it; 0 = unknown

	mu      sync.Mutex
	dialer  *rabbit.Dialer // of the attempt under way
	current *attempt       // nil before the first
	running sync.WaitGroup // attempts, and the links that they have made
}

// An attempt to connect is shared by the callers that need a connection.
type attempt struct {
	done chan struct{}
	link *link
	err  error
}

// New returns a Publisher to the broker at url, an AMQP URL such as
// amqp://user:password@host:5672/vhost. Several nodes of one cluster are separated by commas and
// tried in turn. It does not connect: the first Publish does. The caller closes the Publisher after
// the relay.
func New(url string, cfg Config) (Publisher, error) {
	cfg = cfg.withDefaults()
	if cfg.Timeout < 0 {
		return nil, fmt.Errorf("amqprelay: Timeout %v is negative", cfg.Timeout)
	}
	dialer, err := rabbit.NewDialer(url, rabbit.Config{Name: cfg.Name, Timeout: cfg.DialTimeout, TLS: cfg.TLS})
	if err != nil {
		return nil, fmt.Errorf("amqprelay: %w", err)
	}
	p := &publisher{cfg: cfg, dialer: dialer}
	p.life, p.stop = context.WithCancel(context.Background())
	return p, nil
}

func (p *publisher) Publish(ctx context.Context, m relay.Message) error {
	message, err := p.encode(m)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, p.cfg.Timeout)
	defer cancel()
	l, err := p.connect(ctx)
	if err != nil {
		return unavailable("not connected", err)
	}
	err = l.publish(ctx, p.cfg.Exchange, m.Topic, message)
	if limit := l.maxSize.Load(); limit > 0 {
		p.maxSize.Store(limit)
	}
	return err
}

// encode returns m as the broker gets it.
func (p *publisher) encode(m relay.Message) (amqp.Publishing, error) {
	if limit := p.maxSize.Load(); limit > 0 && int64(len(m.Body)) > limit {
		return amqp.Publishing{}, fmt.Errorf("%w: its body has %d bytes, and max_message_size is %d", errTooLarge, len(m.Body), limit)
	}
	headers := amqp.Table{}
	for name, value := range m.Headers {
		if len(name) > 255 {
			return amqp.Publishing{}, errHeader
		}
		headers[name] = value
	}
	if m.Key != "" {
		headers["belay-key"] = m.Key
	}
	headers[rabbit.MessageHeader] = m.ID
	return amqp.Publishing{
		Headers:      headers,
		ContentType:  rabbit.Short(contentType(m.Headers)),
		DeliveryMode: amqp.Persistent,
		MessageId:    m.ID,
		Type:         m.Topic,
		Timestamp:    m.Time,
		Body:         m.Body,
	}, nil
}

// contentType returns the header content-type, however its name is spelt.
func contentType(headers map[string]string) string {
	for name, value := range headers {
		if strings.EqualFold(name, "content-type") {
			return value
		}
	}
	return ""
}

// connect returns a link that works as far as is known. Callers that come together share one
// attempt, and its error.
func (p *publisher) connect(ctx context.Context) (*link, error) {
	p.mu.Lock()
	if p.life.Err() != nil {
		p.mu.Unlock()
		return nil, errClosed
	}
	a := p.current
	if a == nil || a.failed() {
		a = &attempt{done: make(chan struct{})}
		p.current = a
		p.running.Go(func() { p.dial(a) })
	}
	p.mu.Unlock()
	select {
	case <-a.done:
		return a.link, a.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// failed reports whether the attempt has ended without a link, or its link is over.
func (a *attempt) failed() bool {
	select {
	case <-a.done:
		return a.err != nil || a.link.over()
	default:
		return false
	}
}

// dial connects, and stays with the link until that is over.
func (p *publisher) dial(a *attempt) {
	var session *rabbit.Session
	a.err = background.Do(p.cfg.Logger, "connect to rabbitmq", func() (err error) {
		session, err = p.dialer.Dial(p.life, func(ch *amqp.Channel) error { return ch.Confirm(false) })
		return err
	})
	if a.err != nil {
		close(a.done)
		return
	}
	defer session.Close()
	a.link = newLink(session)
	p.cfg.Logger.Info("connected to rabbitmq", "addr", p.dialer.Addr())
	addr := p.dialer.Addr()
	close(a.done)
	if reason := a.link.watch(p.life); p.life.Err() == nil {
		p.cfg.Logger.Warn("connection to rabbitmq is lost", "addr", addr, "error", reason)
	}
}

func (p *publisher) Ping(ctx context.Context) error {
	if _, err := p.connect(ctx); err != nil {
		return fmt.Errorf("amqprelay: ping broker: %w", err)
	}
	return nil
}

func (p *publisher) Close(ctx context.Context) error {
	p.mu.Lock()
	p.stop()
	p.mu.Unlock()
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.running.Wait()
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("amqprelay: close: %w", ctx.Err())
	}
}

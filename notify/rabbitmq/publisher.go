package rabbitmq

import (
	"context"
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/belaygo/belay/internal/breaker"
	"github.com/belaygo/belay/internal/cloudevent"
	"github.com/belaygo/belay/internal/doctor"
	"github.com/belaygo/belay/internal/heartbeat"
	"github.com/belaygo/belay/internal/rabbit"
	"github.com/belaygo/belay/notify"
)

// A Publisher sends events to RabbitMQ. It is safe for concurrent use.
//
// Publish returns nil once the broker has found the monitor's queue, routed the event and confirmed
// it. After [ErrUnroutable] the broker has not accepted the event. Nor has it after an error that
// matches notify.ErrRefused: the event is larger than the broker's max_message_size. After any other
// error it may have accepted the event. PublishRaw publishes an event as it is; of its data it reads
// the verdict and the service only.
type Publisher interface {
	notify.Publisher
	notify.RawPublisher
	prometheus.Collector

	// Ping waits until there is a connection. If ctx ends first, it returns the error of the
	// last attempt to connect.
	Ping(ctx context.Context) error
	// Close disconnects. A Publish that is under way ends with an error, and its outcome is
	// unknown. Close may be called again. It ends with ctx, or about a second after the call
	// when the broker does not answer.
	Close(ctx context.Context) error

	heartbeat.Publisher // for an outbox
	doctor.Diagnoser    // for belay.Doctor
}

type publisher struct {
	*metrics

	cfg        Config
	dialer     *rabbit.Dialer // of Diagnose; never dials itself
	breaker    *breaker.Breaker
	supervisor *supervisor
	stop       context.CancelFunc
}

// New returns a Publisher to the broker at url, an AMQP URL such as
// amqp://user:password@host:5672/vhost. Several nodes of one cluster are
// separated by commas (host1:5672,host2:5672) and tried in turn. It does not
// connect: the first Publish or Ping does. The caller closes the Publisher.
func New(url string, cfg Config) (Publisher, error) {
	cfg = cfg.withDefaults()
	if cfg.Timeout < 0 {
		return nil, fmt.Errorf("rabbitmq: Timeout %v is negative", cfg.Timeout)
	}
	dialer, err := rabbit.NewDialer(url, rabbit.Config{Name: cfg.Name, Timeout: cfg.DialTimeout, TLS: cfg.TLS})
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	b := breaker.New(isAnswer, func(err error) bool { return errors.Is(err, errClosed) })
	m := newMetrics(cfg.Name, b)
	p := &publisher{cfg: cfg, metrics: m, dialer: dialer.Clone(), breaker: b, supervisor: newSupervisor(cfg, dialer, m), stop: stop}
	go p.supervisor.run(ctx)
	return p, nil
}

// isAnswer reports whether err shows that the broker is well.
func isAnswer(err error) bool {
	return errors.Is(err, ErrUnroutable) || errors.Is(err, errRefused) || errors.Is(err, errTooLarge)
}

func (p *publisher) Publish(ctx context.Context, ev notify.Event) error {
	env, body, err := encode(ev)
	if err != nil {
		return fmt.Errorf("rabbitmq: encode event: %w", err)
	}
	return p.publish(ctx, env, body)
}

func (p *publisher) PublishRaw(ctx context.Context, body []byte) error {
	env, err := read(body)
	if err != nil {
		return fmt.Errorf("rabbitmq: read event: %w", err)
	}
	return p.publish(ctx, env, body)
}

func (p *publisher) publish(ctx context.Context, env cloudevent.Envelope[routed], body []byte) error {
	message := newMessage(cloudevent.Event, env.ID, env.Data.Service, env.Time, body)
	message.Headers = headers(env.TraceParent, env.TraceState)
	err := p.guarded(ctx, rabbit.Queue, rabbit.EventKey(env.Data.Verdict), message)
	p.count(err)
	if err != nil {
		return fmt.Errorf("publish event: %w", err)
	}
	return nil
}

// PublishHeartbeat is for an outbox. It returns nil once the broker has routed h to a
// queue and confirmed it. It does not check that the queue is the monitor's, which
// notices missing heartbeats. The errors are those of Publish.
func (p *publisher) PublishHeartbeat(ctx context.Context, h heartbeat.Heartbeat) error {
	body, err := h.MarshalJSON()
	if err != nil {
		return fmt.Errorf("rabbitmq: encode heartbeat: %w", err)
	}
	message := newMessage(cloudevent.Heartbeat, h.ID, h.Service, h.At, body)
	message.DeliveryMode = amqp.Transient
	if err := p.guarded(ctx, "", rabbit.HeartbeatKey, message); err != nil {
		return fmt.Errorf("publish heartbeat: %w", err)
	}
	return nil
}

// guarded sends a message, within the Timeout, unless the breaker is open. The queue
// must exist, unless it is "".
func (p *publisher) guarded(ctx context.Context, queue, key string, message amqp.Publishing) error {
	ctx, cancel := context.WithTimeout(ctx, p.cfg.Timeout)
	defer cancel()
	r := &request{ctx: ctx, queue: queue, key: key, message: message, answer: make(chan error, 1)}
	_, err := p.breaker.Execute(func() (struct{}, error) { return struct{}{}, p.supervisor.send(r) })
	if breaker.IsOpen(err) {
		if reason := p.supervisor.reason(); reason != nil {
			return fmt.Errorf("%w: %w", errOpen, reason)
		}
		return errOpen
	}
	return err
}

func (p *publisher) Ping(ctx context.Context) error {
	if err := p.supervisor.ping(ctx); err != nil {
		return fmt.Errorf("ping broker: %w", err)
	}
	return nil
}

func (p *publisher) Close(ctx context.Context) error {
	p.stop()
	select {
	case <-p.supervisor.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("rabbitmq: close: %w", ctx.Err())
	}
}

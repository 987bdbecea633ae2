package webhook

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/belaygo/belay/internal/breaker"
	"github.com/belaygo/belay/internal/cloudevent"
	"github.com/belaygo/belay/internal/doctor"
	"github.com/belaygo/belay/internal/heartbeat"
	"github.com/belaygo/belay/internal/ingest"
	"github.com/belaygo/belay/notify"
)

const (
	connections = 4                // at most
	idleTimeout = 30 * time.Second // less than the monitor's
	maxHeader   = 16 << 10         // bytes of an answer
)

// A Publisher posts events to guard-monitor. It is safe for concurrent use.
//
// Publish returns nil once the monitor has the event on disk. An error that matches
// notify.ErrInvalidEvent means that the monitor will never take the event. One that matches
// notify.ErrRefused means that it has not taken it now. After any other error it may have the event.
// PublishRaw publishes an event as it is; of its data it reads the service only.
type Publisher interface {
	notify.Publisher
	notify.RawPublisher
	prometheus.Collector

	// Close ends the requests that are under way, whose outcome is then unknown, and closes
	// the connections. It may be called again. It ends with ctx.
	Close(ctx context.Context) error

	heartbeat.Publisher     // for an outbox
	doctor.ServiceDiagnoser // for belay.Doctor
}

type publisher struct {
	*metrics

	cfg     Config
	base    *url.URL // the monitor's address
	url     string   // the route of events, for errors and logs
	client  *http.Client
	breaker *breaker.Breaker
	life    context.Context // ends with Close
	stop    context.CancelFunc

	mu       sync.Mutex
	inflight sync.WaitGroup
	refused  map[string]int // the last status by service, where that is 401 or 403
}

// New returns a Publisher to the guard-monitor at address, such as
// https://monitor.example.com:9440, with a path if the monitor's external_url has one. An
// address with https may name files in PEM:
// ?cacertfile=ca.pem&certfile=own.pem&keyfile=own.key. New does not connect: the first
// Publish does. The caller closes the Publisher.
func New(address string, cfg Config) (Publisher, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	base, secure, err := parse(address, cfg.TLS)
	if err != nil {
		return nil, err
	}
	p := &publisher{cfg: cfg, base: base, url: base.JoinPath(ingest.Path).String(), refused: make(map[string]int)}
	p.life, p.stop = context.WithCancel(context.Background())
	p.breaker = breaker.New(
		func(err error) bool { return errors.Is(err, errAnswered) },
		func(err error) bool { return errors.Is(err, errClosed) })
	p.metrics = newMetrics(cfg.Name, p.breaker)
	if secure = secure.Clone(); secure != nil {
		secure.NextProtos = nil // HTTP/1.1 is all that is spoken
	}
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: p.dial,
		TLSClientConfig: secure, TLSHandshakeTimeout: cfg.Timeout,
		MaxConnsPerHost: connections, MaxIdleConnsPerHost: connections, IdleConnTimeout: idleTimeout,
		MaxResponseHeaderBytes: maxHeader, Protocols: new(http.Protocols),
	}
	// A request of HTTP/2 that times out leaves its connection to the next one, dead or not.
	transport.Protocols.SetHTTP1(true)
	p.client = &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
	return p, nil
}

// dial connects, within the Timeout: a request that gives up leaves its dial to others.
func (p *publisher) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, p.cfg.Timeout)
	defer cancel()
	defer context.AfterFunc(p.life, cancel)()
	return new(net.Dialer).DialContext(ctx, network, addr)
}

// sender is the part of an event's data that the publisher reads.
type sender struct {
	Service string `json:"service"`
}

func (p *publisher) Publish(ctx context.Context, ev notify.Event) error {
	body, err := ev.MarshalJSON()
	if err != nil {
		return fmt.Errorf("webhook: encode event: %w", err)
	}
	return p.publish(ctx, ev.ID, ev.Service, body)
}

func (p *publisher) PublishRaw(ctx context.Context, body []byte) error {
	env, err := cloudevent.Open[sender](body, cloudevent.Event)
	if err != nil {
		return fmt.Errorf("webhook: read event: %w", err)
	}
	return p.publish(ctx, env.ID, env.Data.Service, body)
}

func (p *publisher) publish(ctx context.Context, id, service string, body []byte) error {
	err := p.guarded(ctx, id, service, body)
	p.count(err)
	if err != nil {
		return fmt.Errorf("publish event: %w", err)
	}
	return nil
}

// PublishHeartbeat is for an outbox. It returns nil once the monitor has h. The errors
// are those of Publish.
func (p *publisher) PublishHeartbeat(ctx context.Context, h heartbeat.Heartbeat) error {
	body, err := h.MarshalJSON()
	if err != nil {
		return fmt.Errorf("webhook: encode heartbeat: %w", err)
	}
	if err := p.guarded(ctx, h.ID, h.Service, body); err != nil {
		return fmt.Errorf("publish heartbeat: %w", err)
	}
	return nil
}

// guarded posts within the Timeout, unless the breaker is open.
func (p *publisher) guarded(ctx context.Context, id, service string, body []byte) error {
	if len(body) > ingest.MaxBody { // the answer to one that is cut off may be lost
		return fmt.Errorf("%w: it has %d bytes, and %d are taken", errRejected, len(body), ingest.MaxBody)
	}
	if !p.enter() {
		return errClosed
	}
	defer p.inflight.Done()
	ctx, cancel := context.WithTimeout(ctx, p.cfg.Timeout)
	defer cancel()
	defer context.AfterFunc(p.life, cancel)()
	_, err := p.breaker.Execute(func() (struct{}, error) {
		status, err := p.post(ctx, id, service, body)
		if err != nil && p.life.Err() != nil {
			return struct{}{}, errClosed
		}
		p.noteRefusal(service, status, err)
		return struct{}{}, err
	})
	if breaker.IsOpen(err) {
		return errOpen
	}
	return err
}

// enter admits one call unless the Publisher is closed.
func (p *publisher) enter() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.life.Err() != nil {
		return false
	}
	p.inflight.Add(1)
	return true
}

// noteRefusal logs that the monitor refuses a service, or no longer does, once per change.
func (p *publisher) noteRefusal(service string, status int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := p.refused[service]
	log := p.cfg.Logger.With(slog.String("service", service), slog.String("url", p.url))
	switch {
	case err == nil && before != 0:
		delete(p.refused, service)
		log.Info("guard-monitor takes events again")
	case errors.Is(err, errUnauthorized) && status != before:
		p.refused[service] = status
		log.Error("guard-monitor refuses events, which stay in the outbox: compare the token, and the services of its entry in the monitor's setting ingest",
			slog.Any("error", err))
	}
}

func (p *publisher) Close(ctx context.Context) error {
	p.mu.Lock()
	p.stop()
	p.mu.Unlock()
	done := make(chan struct{})
	go func() {
		p.inflight.Wait()
		p.client.CloseIdleConnections()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("webhook: close: %w", ctx.Err())
	}
}

package rabbit

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"
	"unicode/utf8"

	amqp "github.com/rabbitmq/amqp091-go"
)

// Pauses between attempts to connect.
const (
	MinPause = 500 * time.Millisecond
	MaxPause = 30 * time.Second
)

const (
	defaultTimeout = 10 * time.Second
	heartbeat      = 10 * time.Second
)

// Config says how to connect.
type Config struct {
	Name    string        // of the connection, shown by the broker
	Timeout time.Duration // of one attempt to connect; 0 means 10s
	TLS     *tls.Config
}

// A Dialer connects to the nodes of one cluster by turns. It is not safe for
// concurrent use.
type Dialer struct {
	cfg    Config
	nodes  []Node
	turn   int
	failed bool // the last attempt
}

// NewDialer returns a Dialer to the broker at url, which may name several nodes. It
// does not connect.
func NewDialer(url string, cfg Config) (*Dialer, error) {
	switch {
	case !utf8.ValidString(cfg.Name):
		return nil, fmt.Errorf("rabbitmq: Name %q is not UTF-8", cfg.Name)
	case cfg.Timeout < 0:
		return nil, fmt.Errorf("rabbitmq: DialTimeout %v is negative", cfg.Timeout)
	case cfg.Timeout == 0:
		cfg.Timeout = defaultTimeout
	}
	nodes, err := ParseURL(url)
	if err != nil {
		return nil, err
	}
	cfg.Name = "belay " + Short(cfg.Name)
	return &Dialer{cfg: cfg, nodes: nodes}, nil
}

// Open opens a session to the first node that answers, and lets setup prepare its
// channel. It tries each node once.
func Open(ctx context.Context, url string, cfg Config, setup func(*amqp.Channel) error) (*Session, error) {
	dialer, err := NewDialer(url, cfg)
	if err != nil {
		return nil, err
	}
	var errs []error
	for range dialer.nodes {
		session, err := dialer.Dial(ctx, setup)
		if err == nil {
			return session, nil
		}
		errs = append(errs, err)
		if refused, ok := errors.AsType[*amqp.Error](err); ok && refused.Code == amqp.NotFound { // no other node has it either
			break
		}
	}
	return nil, errors.Join(errs...)
}

// Clone returns a Dialer whose turns are its own.
func (d *Dialer) Clone() *Dialer {
	clone := *d
	return &clone
}

// Addr returns the node whose turn it is, as host:port.
func (d *Dialer) Addr() string { return d.node().Addr }

func (d *Dialer) node() Node { return d.nodes[d.turn%len(d.nodes)] }

// Dial opens a session and lets setup prepare its channel, all within
// Config.Timeout. After a failure it tries the next node. When ctx ends later, the
// session's end becomes bounded in time: the socket is cut after closeTimeout.
func (d *Dialer) Dial(ctx context.Context, setup func(*amqp.Channel) error) (*Session, error) {
	limit, cancel := context.WithTimeout(ctx, d.cfg.Timeout)
	defer cancel()
	if d.failed {
		d.turn++
	}
	s := &Session{User: d.node().User}
	err := d.open(limit, s, setup)
	d.failed = err != nil
	if err != nil {
		s.Close()
		if limit.Err() != nil {
			late := fmt.Errorf("no answer within %v: %w", d.cfg.Timeout, limit.Err())
			err = fmt.Errorf("%w (%w)", cmp.Or(ctx.Err(), late), err)
		}
		return nil, fmt.Errorf("connect to %s: %w", d.Addr(), err)
	}
	s.unhook = context.AfterFunc(ctx, func() {
		time.AfterFunc(closeTimeout, func() { _ = s.socket.Close() })
	})
	return s, nil
}

// open cuts the socket when ctx ends, since the client library's calls cannot
// be interrupted otherwise.
func (d *Dialer) open(ctx context.Context, s *Session, setup func(*amqp.Channel) error) error {
	stop := func() bool { return true }
	defer func() { stop() }()

	properties := amqp.NewConnectionProperties()
	properties.SetClientConnectionName(d.cfg.Name)
	conn, err := amqp.DialConfig(d.node().URL, amqp.Config{
		Heartbeat:       heartbeat,
		Properties:      properties,
		TLSClientConfig: d.cfg.TLS.Clone(), // the library sets its ServerName
		Dial: func(network, addr string) (net.Conn, error) {
			socket, err := new(net.Dialer).DialContext(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			s.socket = boundedWrites{socket}
			stop = context.AfterFunc(ctx, func() { _ = socket.Close() })
			return s.socket, nil
		},
	})
	if err != nil {
		return err
	}
	s.Conn = conn
	if err := s.openChannel(setup); err != nil {
		return err
	}
	return ctx.Err()
}

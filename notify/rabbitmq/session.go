package rabbitmq

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/belaygo/belay/internal/amqpurl"
)

const (
	heartbeat    = 10 * time.Second
	writeTimeout = 5 * time.Second // for one write to the socket
	closeTimeout = time.Second     // for the closing handshake
)

// Pauses between attempts to connect.
const (
	minPause = 500 * time.Millisecond
	maxPause = 30 * time.Second
)

// dialConfig tells how to connect. It is not safe for concurrent use.
type dialConfig struct {
	nodes   []amqpurl.Node // of one cluster
	turn    int
	failed  bool   // the last attempt did
	name    string // shown by the broker
	tls     *tls.Config
	timeout time.Duration
}

// node returns the one whose turn it is.
func (c *dialConfig) node() amqpurl.Node { return c.nodes[c.turn%len(c.nodes)] }

const defaultDialTimeout = 10 * time.Second

// A session is one generation: a connection and its channel. One goroutine owns
// it. Nothing survives it. Its connection is never repaired; a publisher replaces
// a channel that the broker has closed for want of a queue (reopen).
type session struct {
	conn   *amqp.Connection
	ch     *amqp.Channel
	socket net.Conn
	closed chan *amqp.Error // the end of the channel, for whatever reason
	unhook func() bool
}

// connect opens a session and lets setup prepare its channel, all within
// c.timeout. When ctx ends later, the session's end becomes bounded in time: the
// socket is cut after closeTimeout.
func connect(ctx context.Context, c *dialConfig, setup func(*amqp.Channel) error) (*session, error) {
	limit, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	if c.failed {
		c.turn++
	}
	s := &session{}
	err := s.open(limit, c, setup)
	c.failed = err != nil
	if err != nil {
		s.close()
		if limit.Err() != nil {
			err = fmt.Errorf("%w (%w)", timedOut(limit, c.timeout), err)
		}
		return nil, fmt.Errorf("connect to %s: %w", c.node().Addr, err)
	}
	s.unhook = context.AfterFunc(ctx, func() {
		time.AfterFunc(closeTimeout, func() { _ = s.socket.Close() })
	})
	return s, nil
}

func timedOut(ctx context.Context, timeout time.Duration) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("no answer within %v: %w", timeout, ctx.Err())
	}
	return ctx.Err()
}

// open cuts the socket when ctx ends, since the client library's calls cannot
// be interrupted otherwise.
func (s *session) open(ctx context.Context, c *dialConfig, setup func(*amqp.Channel) error) error {
	stop := func() bool { return true }
	defer func() { stop() }()

	properties := amqp.NewConnectionProperties()
	properties.SetClientConnectionName(c.name)
	conn, err := amqp.DialConfig(c.node().URL, amqp.Config{
		Heartbeat:       heartbeat,
		Properties:      properties,
		TLSClientConfig: c.tls.Clone(), // the library sets its ServerName
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
	s.conn = conn
	if err := s.openChannel(setup); err != nil {
		return err
	}
	return ctx.Err()
}

func (s *session) openChannel(setup func(*amqp.Channel) error) error {
	ch, err := s.conn.Channel()
	if err != nil {
		return fmt.Errorf("open channel: %w", err)
	}
	s.ch = ch
	s.closed = ch.NotifyClose(make(chan *amqp.Error, 1))
	return setup(ch)
}

// reopen opens a new channel in place of one that the broker has closed, within
// timeout: it cuts the socket then. After an error the session is over.
func (s *session) reopen(timeout time.Duration, setup func(*amqp.Channel) error) error {
	cut := time.AfterFunc(timeout, func() { _ = s.socket.Close() })
	defer cut.Stop()
	return s.openChannel(setup)
}

// inspect asks for the state of a queue, within timeout: it cuts the socket then. If
// the queue does not exist, the broker closes the channel.
func (s *session) inspect(queue string, timeout time.Duration) (amqp.Queue, error) {
	cut := time.AfterFunc(timeout, func() { _ = s.socket.Close() })
	defer cut.Stop()
	return s.ch.QueueDeclarePassive(queue, true, false, false, false, nil)
}

// close ends the session, with the closing handshake if there is somebody to
// answer it within closeTimeout. What remains unacknowledged goes back to its
// queue.
func (s *session) close() {
	if s.unhook != nil {
		s.unhook()
	}
	if s.conn != nil {
		cut := time.AfterFunc(closeTimeout, func() { _ = s.socket.Close() })
		defer cut.Stop()
		_ = s.conn.Close() // broken already, as often as not
	}
	if s.socket != nil {
		_ = s.socket.Close()
	}
}

// over tells a cancelled consumer from a closed channel, either of which closes
// the consumer's Go channel.
func (s *session) over() error {
	if !s.ch.IsClosed() {
		return errCancelled
	}
	return end(<-s.closed)
}

// end returns why the channel was closed, given what came out of closed.
func end(reason *amqp.Error) error {
	if reason == nil {
		return errors.New("connection closed")
	}
	return reason
}

// boundedWrites fails a write that the peer does not take, instead of blocking
// until the peer is known to be dead.
type boundedWrites struct{ net.Conn }

func (c boundedWrites) Write(b []byte) (int, error) {
	if err := c.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return 0, err
	}
	return c.Conn.Write(b)
}

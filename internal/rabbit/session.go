package rabbit

import (
	"errors"
	"fmt"
	"net"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

const (
	writeTimeout = 5 * time.Second // for one write to the socket
	closeTimeout = time.Second     // for the closing handshake
)

// A Session is one generation: a connection and its channel. One goroutine owns
// it. Nothing survives it. Its connection is never repaired; a publisher replaces
// a channel that the broker has closed for want of a queue (Reopen).
type Session struct {
	Conn    *amqp.Connection
	Channel *amqp.Channel
	Closed  chan *amqp.Error // the end of the channel, for whatever reason
	User    string           // of the connection, see Node

	socket net.Conn
	unhook func() bool
}

func (s *Session) openChannel(setup func(*amqp.Channel) error) error {
	ch, err := s.Conn.Channel()
	if err != nil {
		return fmt.Errorf("open channel: %w", err)
	}
	s.Channel = ch
	s.Closed = ch.NotifyClose(make(chan *amqp.Error, 1))
	return setup(ch)
}

// Reopen opens a new channel in place of one that the broker has closed, within
// timeout: it cuts the socket then. After an error the session is over.
func (s *Session) Reopen(timeout time.Duration, setup func(*amqp.Channel) error) error {
	cut := time.AfterFunc(timeout, s.Cut)
	defer cut.Stop()
	return s.openChannel(setup)
}

// Inspect returns the state of a queue, within timeout: it cuts the socket then. If
// the queue does not exist, the broker closes the channel.
func (s *Session) Inspect(queue string, timeout time.Duration) (amqp.Queue, error) {
	cut := time.AfterFunc(timeout, s.Cut)
	defer cut.Stop()
	return s.Channel.QueueDeclarePassive(queue, true, false, false, false, nil)
}

// Cut closes the socket, which ends all that is under way: the client library's calls
// cannot be interrupted otherwise.
func (s *Session) Cut() { _ = s.socket.Close() }

// Close ends the session, with the closing handshake if the broker answers it
// within closeTimeout. What remains unacknowledged goes back to its queue.
func (s *Session) Close() {
	if s.unhook != nil {
		s.unhook()
	}
	if s.Conn != nil {
		cut := time.AfterFunc(closeTimeout, s.Cut)
		defer cut.Stop()
		_ = s.Conn.Close() // broken already, as often as not
	}
	if s.socket != nil {
		_ = s.socket.Close()
	}
}

// Over returns why the consumer's Go channel was closed: the broker has cancelled the
// consumer, since the queue was deleted or its leader moved, or the channel is closed.
func (s *Session) Over() error {
	if !s.Channel.IsClosed() {
		return errors.New("the broker cancelled the consumer")
	}
	return Reason(<-s.Closed)
}

// Reason returns why the channel was closed, given what came out of Closed.
func Reason(closed *amqp.Error) error {
	if closed == nil {
		return errors.New("connection closed")
	}
	return closed
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

package zklock

import (
	"context"
	"log/slog"
	"net"
	"time"

	"github.com/belaygo/belay/internal/background"
)

// A socket is a connection that Config.Dial has opened. Where that connection panics, the socket
// returns an error: goroutines without a caller use it, and others do so under a mutex.
type socket struct {
	net.Conn
	logger *slog.Logger
}

// dial opens a connection to a server.
func (c Config) dial(ctx context.Context, server string) (s socket, err error) {
	s.logger = c.Logger
	err = background.Do(c.Logger, "zklock: dial", func() (err error) {
		s.Conn, err = c.Dial(ctx, "tcp", server)
		return err
	})
	return s, err
}

func (s socket) Read(p []byte) (n int, err error) {
	err = background.Do(s.logger, "zklock: read", func() (err error) {
		n, err = s.Conn.Read(p)
		return err
	})
	return n, err
}

func (s socket) Write(p []byte) (n int, err error) {
	err = background.Do(s.logger, "zklock: write", func() (err error) {
		n, err = s.Conn.Write(p)
		return err
	})
	return n, err
}

func (s socket) Close() error {
	return background.Do(s.logger, "zklock: close a connection", func() error { return s.Conn.Close() })
}

func (s socket) SetReadDeadline(t time.Time) error {
	return background.Do(s.logger, "zklock: set a deadline", func() error { return s.Conn.SetReadDeadline(t) })
}

func (s socket) SetWriteDeadline(t time.Time) error {
	return background.Do(s.logger, "zklock: set a deadline", func() error { return s.Conn.SetWriteDeadline(t) })
}

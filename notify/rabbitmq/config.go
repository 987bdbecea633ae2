package rabbitmq

import (
	"crypto/tls"
	"log/slog"
	"time"
)

// Config sets up a Publisher. The zero value is valid.
type Config struct {
	// Name is shown by the broker and told apart in metrics. Default:
	// "publisher".
	Name string
	// Timeout limits one Publish: connecting if need be, sending, and the
	// confirm. Default: 5s.
	Timeout time.Duration
	// DialTimeout limits one attempt to connect, handshakes included. Default:
	// 10s.
	DialTimeout time.Duration
	// TLS is used with amqps URLs. Default: the system's authorities and the
	// host's name, or what the URL's query says.
	TLS *tls.Config
	// Logger gets lost and regained connections. Default: slog.Default().
	Logger *slog.Logger
}

func (c Config) withDefaults() Config {
	if c.Name == "" {
		c.Name = "publisher"
	}
	if c.Timeout == 0 {
		c.Timeout = 5 * time.Second
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

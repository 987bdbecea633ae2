package rabbitmq

import (
	"cmp"
	"crypto/tls"
	"log/slog"
	"time"

	"github.com/belaygo/belay/internal/background"
)

// Config sets up a Publisher. The zero value is valid.
type Config struct {
	// Name identifies the Publisher on the broker and in metrics. Defaults to
	// "publisher".
	Name string
	// Timeout limits one Publish: connecting if need be, sending, and the
	// confirm. Defaults to 5 seconds.
	Timeout time.Duration
	// DialTimeout limits one attempt to connect, handshakes included. Defaults
	// to 10 seconds.
	DialTimeout time.Duration
	// TLS is used with amqps URLs. Defaults to the settings in the URL's query, or else
	// to the system's authorities and the host's name.
	TLS *tls.Config
	// Logger gets lost and regained connections. Defaults to slog.Default().
	Logger *slog.Logger
}

func (c Config) withDefaults() Config {
	c.Name = cmp.Or(c.Name, "publisher")
	c.Timeout = cmp.Or(c.Timeout, 5*time.Second)
	c.Logger = background.Logger(c.Logger)
	return c
}

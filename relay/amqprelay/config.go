package amqprelay

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/belaygo/belay/internal/background"
	"github.com/belaygo/belay/relay"
)

// Config sets up a Publisher. The zero value is valid.
type Config struct {
	// Name identifies the Publisher on the broker. Defaults to "relay".
	Name string
	// Exchange takes the messages. It must exist. Defaults to the broker's default exchange,
	// where the topic is the name of a queue.
	Exchange string
	// Timeout limits the time until the broker confirms a message. Defaults to 5 seconds.
	Timeout time.Duration
	// DialTimeout limits one attempt to connect, handshakes included. Defaults to 10
	// seconds.
	DialTimeout time.Duration
	// TLS is used with amqps URLs. Defaults to the settings in the URL's query, or else to
	// the system's authorities and the host's name.
	TLS *tls.Config
	// Logger gets lost and regained connections. Defaults to slog.Default().
	Logger *slog.Logger
}

func (c Config) withDefaults() Config {
	c.Name = cmp.Or(c.Name, "relay")
	c.Timeout = cmp.Or(c.Timeout, 5*time.Second)
	c.Logger = background.Logger(c.Logger)
	return c
}

var (
	// ErrUnroutable is returned when no queue is bound for the topic of a message.
	ErrUnroutable = errors.New("amqprelay: message is unroutable: no queue is bound for its topic")
	// errRefused is returned when the broker did not take responsibility for a message: its
	// queue is full, or cannot reach a majority.
	errRefused = errors.New("amqprelay: refused by the broker")
	// errUnconfirmed is returned when a confirm does not come in time: the queue may lack a
	// majority, while others work.
	errUnconfirmed = errors.New("amqprelay: no confirm")
	// errTooLarge is matched when a message is larger than the broker's max_message_size.
	errTooLarge = fmt.Errorf("amqprelay: message is too large for the broker (%w)", relay.ErrRejected)
	errHeader   = fmt.Errorf("amqprelay: the name of a header has more than 255 bytes (%w)", relay.ErrRejected)
)

// unavailable wraps an error of the connection.
func unavailable(what string, err error) error {
	return fmt.Errorf("amqprelay: %s: %w (%w)", what, err, relay.ErrUnavailable)
}

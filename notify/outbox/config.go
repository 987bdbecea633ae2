package outbox

import (
	"errors"
	"fmt"
	"log/slog"
	"time"
	"unicode/utf8"

	"github.com/belaygo/belay/notify"
)

// Config sets up an Outbox. The zero value is valid.
type Config struct {
	// Name tells several outboxes of one process apart in metrics. Default:
	// "outbox".
	Name string
	// Service and Instance are who heartbeats speak for. Default: none are sent.
	Service, Instance string
	// Relay takes the stored events to their destination; it must return nil
	// only when they are safe there, and must return when its context ends. An error
	// that matches notify.ErrInvalidEvent sets the row aside for an hour. A
	// notify.RawPublisher gets the stored bytes, a notify.HeartbeatPublisher gets
	// heartbeats as well. Nil means that this process only stores, and that another
	// one relays.
	Relay notify.Publisher
	// Logger gets warnings about the relay, and events that would be lost. Default:
	// slog.Default().
	Logger *slog.Logger
	// GatherDelay is how long an event waits for others that share its INSERT.
	// Default: 2ms.
	GatherDelay time.Duration
	// WriteTimeout limits one Publish in all, but for the GatherDelay. With a
	// Relay, two thirds of it are for the table, the rest for publishing
	// directly. Default: 3s.
	WriteTimeout time.Duration
	// RelayTimeout limits the relay's publishing of one event. Default: 10s.
	RelayTimeout time.Duration
	// Lease is how long the rows that a relay has taken are left to it; after a
	// crash they wait that long. At least twice the RelayTimeout, and at most an
	// hour. Default: three times the RelayTimeout.
	Lease time.Duration
	// PollInterval is how often the relay looks for rows that this process did
	// not store. Default: 1s.
	PollInterval time.Duration
	// BatchSize is how many rows the relay takes at once, at most 1000. Default:
	// 100.
	BatchSize int
	// HeartbeatInterval is the time between heartbeats. Default: 1m.
	HeartbeatInterval time.Duration
}

func (c Config) withDefaults() Config {
	if c.Name == "" {
		c.Name = "outbox"
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.GatherDelay == 0 {
		c.GatherDelay = 2 * time.Millisecond
	}
	if c.WriteTimeout == 0 {
		c.WriteTimeout = 3 * time.Second
	}
	if c.RelayTimeout == 0 {
		c.RelayTimeout = 10 * time.Second
	}
	if c.Lease == 0 {
		c.Lease = 3 * c.RelayTimeout
	}
	if c.PollInterval == 0 {
		c.PollInterval = time.Second
	}
	if c.BatchSize == 0 {
		c.BatchSize = 100
	}
	if c.HeartbeatInterval == 0 {
		c.HeartbeatInterval = time.Minute
	}
	return c
}

func (c Config) validate() error {
	switch {
	case !utf8.ValidString(c.Name):
		return fmt.Errorf("outbox: Name %q is not UTF-8", c.Name)
	case !utf8.ValidString(c.Service) || !utf8.ValidString(c.Instance):
		return fmt.Errorf("outbox: Service %q or Instance %q is not UTF-8", c.Service, c.Instance)
	case c.Service == "" && c.Instance != "":
		return errors.New("outbox: Instance without a Service")
	case c.GatherDelay < 0:
		return fmt.Errorf("outbox: GatherDelay %v is negative", c.GatherDelay)
	case c.WriteTimeout < 0:
		return fmt.Errorf("outbox: WriteTimeout %v is negative", c.WriteTimeout)
	case c.RelayTimeout < 0:
		return fmt.Errorf("outbox: RelayTimeout %v is negative", c.RelayTimeout)
	case c.Lease < 2*c.RelayTimeout:
		return fmt.Errorf("outbox: Lease %v is shorter than twice the RelayTimeout of %v", c.Lease, c.RelayTimeout)
	case c.Lease > longest:
		return fmt.Errorf("outbox: Lease %v is longer than %v", c.Lease, longest)
	case c.PollInterval < 0:
		return fmt.Errorf("outbox: PollInterval %v is negative", c.PollInterval)
	case c.BatchSize < 0 || c.BatchSize > 1000:
		return fmt.Errorf("outbox: BatchSize %d is outside 1 to 1000", c.BatchSize)
	case c.HeartbeatInterval < 0:
		return fmt.Errorf("outbox: HeartbeatInterval %v is negative", c.HeartbeatInterval)
	}
	return nil
}

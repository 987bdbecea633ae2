package outbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"
	"unicode/utf8"

	"github.com/belaygo/belay/internal/background"
	"github.com/belaygo/belay/notify"
)

// Config sets up an Outbox. The zero value is valid.
type Config struct {
	// Name identifies the outbox in metrics, if a process has several. Defaults to
	// "outbox".
	Name string
	// Service and Instance are the sender of heartbeats. Without a Service none are
	// sent.
	Service, Instance string
	// Relay takes the stored events to their destination. It must return nil only
	// when they are safe there, and must return when its context ends. An error that
	// matches notify.ErrInvalidEvent sets the row aside for an hour. One that matches
	// notify.ErrRefused sets it aside for 30 seconds to 10 minutes. One with a method
	// RetryAfter() time.Duration pauses the relay that long, for a minute at most. A
	// notify.RawPublisher gets the stored bytes. A rabbitmq.Publisher or a
	// webhook.Publisher, and a struct that embeds one, gets heartbeats as well. Defaults to nil: this process only stores,
	// and another one relays.
	Relay notify.Publisher
	// Logger gets warnings about the relay, and events that would be lost. Defaults to
	// slog.Default().
	Logger *slog.Logger
	// RelayTimeout limits the publishing of one stored event, and is at most 20 minutes.
	// A relay leases rows for three times as long; after a crash they wait that long.
	// Defaults to 10 seconds.
	RelayTimeout time.Duration
	// HeartbeatInterval is the time between heartbeats. Defaults to 1 minute.
	HeartbeatInterval time.Duration
	// Switch returns the State of the engine that keeps this process's locks, if that is a
	// switchlock.Engine. Heartbeats carry it to guard-monitor, and one is sent within a
	// second or two after a change. Switch must not block. Defaults to nil: the locks have
	// one engine.
	Switch func() Switch
	// Messages counts the messages that wait, as relay.Count does. Heartbeats carry
	// the counts to guard-monitor. It must return when ctx ends, a second later at most. Defaults to nil:
	// this process sends no messages.
	Messages func(ctx context.Context) (Messages, error)
	// Calls counts the requests of guard.Call that are not settled, with the same bounds as Messages.
	// belay.Open sets it. Defaults to nil: this process makes no such calls.
	Calls func(ctx context.Context) (Calls, error)

	limits limits
}

// limits are bounds that no service has had to set.
type limits struct {
	// gatherDelay is how long an event waits for others that share its INSERT.
	gatherDelay time.Duration
	// writeTimeout limits one Publish, without the gatherDelay. With a Relay, two
	// thirds of it are for the table, the rest for publishing directly.
	writeTimeout time.Duration
	// lease is how long a relay keeps the rows that it has taken.
	lease time.Duration
	// pollInterval is how often the relay looks for rows that this process did not
	// store.
	pollInterval time.Duration
	// drain is how long Close takes at most if its context has no deadline.
	drain time.Duration
	// batchSize is how many rows the relay takes at once.
	batchSize int
}

const leases = 3 // RelayTimeouts

func (c Config) withDefaults() Config {
	c.Name = cmp.Or(c.Name, "outbox")
	c.Logger = background.Logger(c.Logger)
	c.RelayTimeout = cmp.Or(c.RelayTimeout, 10*time.Second)
	c.HeartbeatInterval = cmp.Or(c.HeartbeatInterval, time.Minute)
	l := &c.limits
	l.gatherDelay = cmp.Or(l.gatherDelay, 2*time.Millisecond)
	l.writeTimeout = cmp.Or(l.writeTimeout, 3*time.Second)
	l.lease = cmp.Or(l.lease, leases*c.RelayTimeout)
	l.pollInterval = cmp.Or(l.pollInterval, time.Second)
	l.drain = cmp.Or(l.drain, 10*time.Second)
	l.batchSize = cmp.Or(l.batchSize, 100)
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
	case c.RelayTimeout < 0 || c.RelayTimeout > longest/leases:
		return fmt.Errorf("outbox: RelayTimeout %v is outside 0 to %v", c.RelayTimeout, longest/leases)
	case c.HeartbeatInterval < 0:
		return fmt.Errorf("outbox: HeartbeatInterval %v is negative", c.HeartbeatInterval)
	}
	return nil
}

package intake

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/belaygo/belay/internal/heartbeat"
	"github.com/belaygo/belay/notify"
)

// name is what the broker and the metrics call the Consumer.
const name = "monitor"

// Config sets up a Consumer. The zero value is valid.
type Config struct {
	// Prefetch is how many messages may wait here, unacknowledged, and is at most 2000.
	// Defaults to 50.
	Prefetch int
	// Heartbeat gets the heartbeats of the instances, and who sent them as a Handler
	// does; where several monitors read, each heartbeat goes to one. It must not block,
	// and may be called while the handler runs. Defaults to nil, which leaves them unread.
	Heartbeat func(ctx context.Context, h heartbeat.Heartbeat, sender string)
	// Admit returns why a sender, "" for an unknown one, may not speak for a service:
	// its events then go to the dead letters, and its heartbeats are dropped. It must
	// not block. Defaults to nil, which admits all.
	Admit func(sender, service string) error
	// Logger gets lost and regained connections, failures of the handler and
	// dead letters. Defaults to slog.Default().
	Logger *slog.Logger

	dialTimeout time.Duration // of one attempt to connect, with its declarations
}

func (c Config) withDefaults() (Config, error) {
	const maxPrefetch = 2000 // of a quorum queue
	if c.Prefetch < 0 || c.Prefetch > maxPrefetch {
		return c, fmt.Errorf("rabbitmq: Prefetch %d is outside 1 to %d", c.Prefetch, maxPrefetch)
	}
	c.Prefetch = cmp.Or(c.Prefetch, 50)
	if c.Admit == nil {
		c.Admit = func(string, string) error { return nil }
	}
	c.Logger = cmp.Or(c.Logger, slog.Default())
	c.dialTimeout = cmp.Or(c.dialTimeout, 10*time.Second)
	return c, nil
}

// AnyService in Sender.Services stands for every service.
const AnyService = "*"

// A Sender may send the events and heartbeats of some services.
type Sender struct {
	Name     string // in logs and metrics
	Token    string
	Services []string
	// EventsPerSecond and Burst limit its events and, apart from these, its heartbeats:
	// Burst of them at once, and then so many a second. Without EventsPerSecond it has
	// no limit; a Burst below 1 counts as 1.
	EventsPerSecond, Burst int64
}

func (s *Sender) speaksFor(service string) bool {
	return slices.Contains(s.Services, service) || slices.Contains(s.Services, AnyService)
}

// EndpointConfig sets up an Endpoint. Senders, Take and Heartbeat are required.
type EndpointConfig struct {
	Senders []Sender
	// Take stores one event and the name of its Sender, as a Handler does. It reports
	// whether the event was new. An error that matches ErrReject is answered with a 403:
	// the event stays with its sender.
	Take func(ctx context.Context, ev notify.Event, raw []byte, sender string) (added bool, err error)
	// Heartbeat stores one heartbeat of an instance and the name of its Sender. Its errors
	// are answered as those of Take.
	Heartbeat func(ctx context.Context, h heartbeat.Heartbeat, sender string) error
	// Logger gets what is refused and failures to store. Defaults to slog.Default().
	Logger *slog.Logger
}

func (c EndpointConfig) logger() *slog.Logger { return cmp.Or(c.Logger, slog.Default()) }

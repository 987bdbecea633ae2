package relay

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/belaygo/belay/internal/background"
	"github.com/belaygo/belay/notify"
)

// Config sets up a Relay. Routes are required.
type Config struct {
	// Name identifies the relay in metrics, if a process has several. Defaults to "relay".
	Name string
	// Routes are the ways out, at most one for each topic. A message whose topic has no
	// route waits, and its followers do, until a relay has one.
	Routes []Route
	// Publisher gets an event for each message that becomes a dead letter; an outbox.Outbox loses
	// none. The caller closes the Relay before it. Defaults to nil: they are logged.
	Publisher notify.Publisher
	// Service and Instance are the sender of these events. Service is required with a Publisher.
	Service, Instance string
	// Logger gets messages that are not accepted, and failures of the database. Defaults to
	// slog.Default().
	Logger *slog.Logger

	limits limits
}

// limits are bounds that no service has had to set.
type limits struct {
	// lease is how long a lane stays with a relay that has died.
	lease time.Duration
	// busyPoll is the time between two reads while there was work in the last busyTime.
	busyPoll, busyTime time.Duration
	// idlePoll is the time between two reads otherwise.
	idlePoll time.Duration
	// minPause and maxPause bound the time before a message is tried again.
	minPause, maxPause time.Duration
	// outage bounds the pause of a route whose destination is unavailable.
	outage time.Duration
	// report is how long Close waits for the events of dead letters.
	report time.Duration
	// writeTimeout limits a statement.
	writeTimeout time.Duration
	// drain is how long Close takes at most if its context has no deadline.
	drain time.Duration
	// slowRead is how long a read takes before its lanes are read one by one, with pauses.
	slowRead time.Duration
	// couriers is how many keys of a route are sent at a time.
	couriers int
	// rows and bytes bound the messages in hand.
	rows, bytes int
}

const defaultTimeout = 30 * time.Second

func (c Config) withDefaults() Config {
	c.Name = cmp.Or(c.Name, "relay")
	c.Logger = background.Logger(c.Logger)
	c.Routes = slices.Clone(c.Routes)
	for n := range c.Routes {
		c.Routes[n].Timeout = cmp.Or(c.Routes[n].Timeout, defaultTimeout)
	}
	l := &c.limits
	l.lease = cmp.Or(l.lease, 30*time.Second)
	l.busyPoll = cmp.Or(l.busyPoll, 50*time.Millisecond)
	l.busyTime = cmp.Or(l.busyTime, 10*time.Second)
	l.idlePoll = cmp.Or(l.idlePoll, time.Second)
	l.minPause = cmp.Or(l.minPause, 500*time.Millisecond)
	l.maxPause = cmp.Or(l.maxPause, time.Minute)
	l.outage = cmp.Or(l.outage, 5*time.Second)
	l.writeTimeout = cmp.Or(l.writeTimeout, 5*time.Second)
	l.drain = cmp.Or(l.drain, 10*time.Second)
	l.report = cmp.Or(l.report, 2*time.Second)
	l.slowRead = cmp.Or(l.slowRead, 200*time.Millisecond)
	l.couriers = cmp.Or(l.couriers, 256)
	l.rows = cmp.Or(l.rows, 1024)
	l.bytes = cmp.Or(l.bytes, 32<<20)
	return c
}

func (c Config) validate() error {
	if !utf8.ValidString(c.Name) {
		return fmt.Errorf("relay: Name %q is not UTF-8", c.Name)
	}
	if !utf8.ValidString(c.Service) || !utf8.ValidString(c.Instance) {
		return fmt.Errorf("relay: Service %q or Instance %q is not UTF-8", c.Service, c.Instance)
	}
	if c.Publisher != nil && c.Service == "" {
		return errors.New("relay: Config has a Publisher and no Service")
	}
	if len(c.Routes) == 0 {
		return errors.New("relay: Routes are missing")
	}
	seen := make(map[string]bool, len(c.Routes))
	for _, r := range c.Routes {
		if err := r.validate(); err != nil {
			return err
		}
		if seen[r.Topic] {
			return fmt.Errorf("relay: two Routes have the Topic %q", r.Topic)
		}
		seen[r.Topic] = true
	}
	return nil
}

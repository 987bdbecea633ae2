// Package monitor is what guard-monitor does with an event: store it, count
// it, print a line. It knows neither RabbitMQ nor HTTP, so that a program can
// also feed it in-process.
package monitor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/lograte"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/store"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/text"
	"github.com/belaygo/belay/internal/heartbeat"
	"github.com/belaygo/belay/notify"
)

// maxName is how many bytes of a service's name are logged.
const maxName = 80

// addTimeout is longer than the store needs for two transactions that wait for another writer:
// the one that is in progress, and that of the event.
const addTimeout = 15 * time.Second

// Store keeps events. *store.Store is one.
type Store interface {
	Add(ctx context.Context, ev notify.Event, raw []byte, sender string) (added bool, err error)
	Recent(ctx context.Context, limit int) ([]store.Received, error)
	AddHeartbeat(ctx context.Context, h incident.Heartbeat) error
}

// Config configures a Monitor.
type Config struct {
	Store  Store        // where events are kept; required
	Out    io.Writer    // where alerts go, one line each; default: nowhere
	Logger *slog.Logger // default: silent
}

// Monitor takes events. It is safe for concurrent use, and a
// prometheus.Collector of the belay_monitor_* metrics.
type Monitor struct {
	store   Store
	log     *slog.Logger
	metrics metrics

	unheard, unwritten lograte.Limit // lines about heartbeats and alerts

	mu  sync.Mutex // keeps lines whole
	out io.Writer
}

var _ prometheus.Collector = (*Monitor)(nil)

// New returns a Monitor on cfg.Store, which the caller closes after the last
// Ingest. It reads the newest event for the metric of its time.
func New(ctx context.Context, cfg Config) (*Monitor, error) {
	if cfg.Store == nil {
		return nil, errors.New("monitor: Config.Store is nil")
	}
	if cfg.Out == nil {
		cfg.Out = io.Discard
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	newest, err := cfg.Store.Recent(ctx, 1)
	if err != nil {
		return nil, fmt.Errorf("find newest event: %w", err)
	}
	m := &Monitor{store: cfg.Store, log: cfg.Logger, out: cfg.Out, metrics: newMetrics()}
	if len(newest) > 0 {
		m.metrics.received(newest[0].At)
	}
	return m, nil
}

// Ingest stores ev with raw, the JSON it was decoded from (nil: made from ev), and
// sender, who is known to have sent it ("": nobody is), and writes one alert line if the
// event is new. It returns nil once the event is on disk, also when it was there before:
// the message that brought it may then be acknowledged. A line that cannot be written is
// logged, not returned, since the event would come back as a duplicate and still have no
// line; so has an event whose process is killed between the store and the line.
func (m *Monitor) Ingest(ctx context.Context, ev notify.Event, raw []byte, sender string) error {
	_, err := m.Take(ctx, ev, raw, sender)
	return err
}

// Take is Ingest that also reports whether the event is new.
func (m *Monitor) Take(ctx context.Context, ev notify.Event, raw []byte, sender string) (added bool, err error) {
	if err := errors.Join(ctx.Err(), ev.Validate()); err != nil {
		return false, err
	}
	added, err = m.add(ctx, ev, raw, sender)
	if err != nil {
		if !errors.Is(err, store.ErrManyServices) { // which its sender has caused
			m.metrics.storeErrors.Inc()
		}
		return false, fmt.Errorf("store event %q: %w", ev.ID, err)
	}
	if !added {
		m.metrics.duplicates.Inc()
		return false, nil
	}
	m.metrics.stored(ev)
	if err := m.alert(ev); err != nil {
		m.unwritten.Warn(ctx, m.log, "alert not written", slog.String("event_id", ev.ID), slog.Any("error", err))
	}
	return true, nil
}

// add is not stopped half-way with ctx: the store might have the event then,
// which would come back as a duplicate without an alert.
func (m *Monitor) add(ctx context.Context, ev notify.Event, raw []byte, sender string) (bool, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), addTimeout)
	defer cancel()
	return m.store.Add(ctx, ev, raw, sender)
}

func (m *Monitor) alert(ev notify.Event) error {
	line := Line(ev)
	m.mu.Lock()
	defer m.mu.Unlock()
	_, err := io.WriteString(m.out, line)
	return err
}

// Heard stores a heartbeat and sender, who is known to have sent it ("": nobody is). One
// that cannot be stored is logged, and the error returned.
func (m *Monitor) Heard(ctx context.Context, h heartbeat.Heartbeat, sender string) error {
	m.metrics.heartbeats.Inc()
	err := m.store.AddHeartbeat(ctx, incident.Heartbeat{
		Service: h.Service, Instance: h.Instance, At: h.At, Every: h.Interval, ReceivedAt: time.Now(),
		Record: incident.Record(h.Switch), Sender: sender, Messages: messagesOf(h.Messages), Calls: callsOf(h.Calls),
	})
	if err != nil {
		m.unheard.Warn(ctx, m.log, "heartbeat not stored", slog.String("service", text.Clip(h.Service, maxName)), slog.Any("error", err))
	}
	return err
}

func messagesOf(m heartbeat.Messages) incident.Messages {
	return incident.Messages{
		Table: m.Table, Waiting: m.Waiting, Oldest: m.Oldest, Parked: m.Parked, Dead: m.Dead, Undecided: m.Undecided, OldestDead: m.OldestDead,
	}
}

func callsOf(c heartbeat.Calls) incident.Calls {
	return incident.Calls{Table: c.Table, Pending: c.Pending, Oldest: c.Oldest, Undecided: c.Undecided, OldestUndecided: c.OldestUndecided}
}

// Describe implements prometheus.Collector.
func (m *Monitor) Describe(ch chan<- *prometheus.Desc) {
	for _, c := range m.metrics.all() {
		c.Describe(ch)
	}
}

// Collect implements prometheus.Collector.
func (m *Monitor) Collect(ch chan<- prometheus.Metric) {
	for _, c := range m.metrics.all() {
		c.Collect(ch)
	}
}

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/dispatch"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/monitor"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/receiver"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/store"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/watch"
	"github.com/belaygo/belay/internal/heartbeat"
	"github.com/belaygo/belay/notify"
)

// localMonitor is guard-monitor in this process, made of its own parts, with what is
// around it: the broker (an event travels as JSON, and is confirmed when it is
// stored), the people who receive alerts, and the watcher of Redis.
type localMonitor struct {
	store   *store.Store
	monitor *monitor.Monitor
	metrics *prometheus.Registry
	alerts  chan receiver.Alert // that people received
	stop    context.CancelFunc
	running sync.WaitGroup

	patience time.Duration // how long to wait for an event, its explanation and its alert
}

// startMonitor starts a monitor with its store at path.
func startMonitor(ctx context.Context, path string) (_ *localMonitor, err error) {
	m := &localMonitor{metrics: prometheus.NewRegistry(), alerts: make(chan receiver.Alert, 100), patience: alertTimeout}
	if m.store, err = store.Open(ctx, path); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, m.store.Close())
		}
	}()
	if m.monitor, err = monitor.New(ctx, monitor.Config{Store: m.store}); err != nil {
		return nil, err
	}
	tracker := incident.NewTracker(incident.Config{Store: m.store, Locator: m, Every: 100 * time.Millisecond, Settle: -1})
	dispatcher, err := dispatch.New(dispatch.Config{
		Store: m.store, Routes: []dispatch.Route{{To: m, RepeatInterval: time.Hour, MaxAlerts: 1}},
	})
	if err != nil {
		return nil, err
	}
	m.metrics.MustRegister(m.monitor, dispatcher, monitor.NewState(m.store, nil, nil))
	ctx, m.stop = context.WithCancel(context.WithoutCancel(ctx))
	m.running.Go(func() { _ = tracker.Run(ctx) })
	m.running.Go(func() { _ = dispatcher.Run(ctx) })
	return m, nil
}

func (m *localMonitor) close() error {
	m.stop()
	m.running.Wait()
	return m.store.Close()
}

// Publish implements notify.Publisher.
func (m *localMonitor) Publish(ctx context.Context, ev notify.Event) error {
	body, err := json.Marshal(ev)
	if err != nil {
		return err
	}
	var received notify.Event
	if err := received.UnmarshalJSON(body); err != nil {
		return err
	}
	return m.monitor.Ingest(ctx, received, body, "")
}

// PublishHeartbeat implements heartbeat.Publisher.
func (m *localMonitor) PublishHeartbeat(ctx context.Context, h heartbeat.Heartbeat) error {
	return m.monitor.Heard(ctx, h, "")
}

// Err implements web.Broker: what is published here arrives.
func (m *localMonitor) Err() error { return nil }

// DeadLetters implements web.Broker: there are none.
func (m *localMonitor) DeadLetters() (int, bool) { return 0, true }

// Name and Send implement dispatch.Sender.
func (m *localMonitor) Name() string { return "people" }

func (m *localMonitor) Send(_ context.Context, n *receiver.Notification) error {
	for _, a := range n.Alerts {
		select {
		case m.alerts <- a:
		default: // they are no longer read
		}
	}
	return nil
}

const redisName = "redis"

// Locate implements incident.Locator: all locks are on the one server.
func (m *localMonitor) Locate(notify.Place) (watch.Location, bool) {
	return watch.Location{Cluster: redisName, SeenAt: time.Now()}, true
}

// saw records that a command was called once since a time. A watch.Watcher queries
// real servers, which count the commands that they are sent; miniredis does not, so
// the demo records what it did itself.
func (m *localMonitor) saw(ctx context.Context, kind watch.Kind, command, node string, since time.Time) error {
	return m.store.AddEntries(ctx, []watch.Entry{{
		Kind: kind, Cluster: redisName, Node: node, Since: since, At: time.Now(),
		Numbers: map[string]int64{command: 1, watch.Callers: 0},
	}})
}

// event waits for the first lock failure that is stored.
func (m *localMonitor) event(ctx context.Context) (ev notify.Event, err error) {
	err = until(ctx, "guard-monitor to have the event", func() (bool, error) {
		list, err := m.store.Recent(ctx, store.MaxRecent)
		for _, r := range list {
			if r.Event.Verdict != notify.VerdictUnavailable { // that request comes again while Redis is away
				ev = r.Event
				return true, err
			}
		}
		return false, err
	})
	return ev, err
}

// explanation waits until the cause of an event is known.
func (m *localMonitor) explanation(ctx context.Context, eventID string) (found incident.Incident, err error) {
	err = until(ctx, "guard-monitor to explain the event", func() (bool, error) {
		ev, _, err := m.store.Event(ctx, eventID)
		if err != nil || ev.Incident == "" {
			return false, err
		}
		found, err = m.store.Incident(ctx, ev.Incident)
		return err == nil && found.Cause == incident.Deleted, err
	})
	return found, err
}

// alert waits until people know the cause.
func (m *localMonitor) alert(ctx context.Context) (receiver.Alert, error) {
	for {
		select {
		case a := <-m.alerts:
			if a.Labels["cause"] == string(incident.Deleted) {
				return a, nil
			}
		case <-ctx.Done():
			return receiver.Alert{}, fmt.Errorf("wait for the alert: %w", context.Cause(ctx))
		}
	}
}

// until waits for done to become true; what is what is waited for.
func until(ctx context.Context, what string, done func() (bool, error)) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		is, err := done()
		switch {
		case ctx.Err() != nil && !is:
			return fmt.Errorf("wait for %s: %w", what, context.Cause(ctx))
		case is || err != nil:
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

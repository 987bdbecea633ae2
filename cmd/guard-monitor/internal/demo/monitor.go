package main

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/dispatch"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/monitor"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/receiver"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/store"
	"github.com/belaygo/belay/notify"
)

// localMonitor is guard-monitor in this process, made of its own parts. It is the
// broker, too: an event travels as JSON, and is confirmed when it is stored.
type localMonitor struct {
	desk
	monitor *monitor.Monitor
	metrics *prometheus.Registry
	stop    context.CancelFunc
	running sync.WaitGroup
}

// startMonitor starts a monitor with its store at path.
func startMonitor(ctx context.Context, path string) (_ *localMonitor, err error) {
	m := &localMonitor{metrics: prometheus.NewRegistry()}
	m.mail, m.cause, m.patience = make(chan message, mailbox), incident.Deleted, alertTimeout
	if m.store, err = store.Open(ctx, path); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, m.store.Close())
		}
	}()
	if m.monitor, err = monitor.New(ctx, monitor.Config{Store: m.store, Out: &m.lines}); err != nil {
		return nil, err
	}
	tracker, err := incident.NewTracker(incident.Config{
		Store: m.store, Locator: watched{m.store}, Every: 100 * time.Millisecond, Settle: -1,
	})
	if err != nil {
		return nil, err
	}
	dispatcher, err := dispatch.New(dispatch.Config{
		Store:  m.store,
		Routes: []dispatch.Route{{To: people{&m.desk}, RepeatInterval: time.Hour, MaxAlerts: 1}},
	})
	if err != nil {
		return nil, err
	}
	for _, c := range []prometheus.Collector{m.monitor, dispatcher, monitor.NewState(m.store, nil, nil, nil)} {
		if err := m.metrics.Register(c); err != nil {
			return nil, err
		}
	}
	ctx, m.stop = context.WithCancel(context.WithoutCancel(ctx))
	m.running.Go(func() { _ = tracker.Run(ctx) })
	m.running.Go(func() { _ = dispatcher.Run(ctx) })
	return m, nil
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
	return m.monitor.Ingest(ctx, received, body)
}

// PublishHeartbeat implements notify.HeartbeatPublisher.
func (m *localMonitor) PublishHeartbeat(ctx context.Context, h notify.Heartbeat) error {
	if err := h.Validate(); err != nil {
		return err
	}
	m.monitor.Heard(ctx, h)
	return nil
}

// Err implements web.Broker: what is published here arrives.
func (m *localMonitor) Err() error { return nil }

// DeadLetters implements web.Broker: there are none.
func (m *localMonitor) DeadLetters() (int, bool) { return 0, true }

func (m *localMonitor) close() error {
	m.stop()
	m.running.Wait()
	return m.store.Close()
}

// people are a receiver of alerts.
type people struct{ *desk }

func (p people) Name() string { return "people" }

func (p people) Send(_ context.Context, n *receiver.Notification) error {
	for _, a := range n.Alerts {
		p.deliver(message{a.Labels, a.Annotations})
	}
	return nil
}

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"

	"github.com/belaygo/belay/internal/monitor"
	"github.com/belaygo/belay/internal/monitor/store"
	"github.com/belaygo/belay/notify"
)

// alerts is the guard-monitor of this process: it stores events and writes an
// alert for each.
type alerts struct {
	store   *store.Store
	monitor *monitor.Monitor
	lines   bytes.Buffer // to be read when nothing is published any more
}

func openAlerts(ctx context.Context, path string) (*alerts, error) {
	st, err := store.Open(ctx, path)
	if err != nil {
		return nil, err
	}
	a := &alerts{store: st}
	if a.monitor, err = monitor.New(ctx, monitor.Config{Store: st, Out: &a.lines}); err != nil {
		return nil, errors.Join(err, st.Close())
	}
	return a, nil
}

// Publish implements notify.Publisher. It stands for the broker: the event
// travels as JSON, and is confirmed when the monitor has stored it.
func (a *alerts) Publish(ctx context.Context, ev notify.Event) error {
	message, err := json.Marshal(ev)
	if err != nil {
		return err
	}
	var received notify.Event
	if err := received.UnmarshalJSON(message); err != nil {
		return err
	}
	return a.monitor.Ingest(ctx, received, message)
}

package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/receiver"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/store"
	"github.com/belaygo/belay/notify"
)

// desk is where guard-monitor's work can be seen.
type desk struct {
	store *store.Store
	lines lines        // what it has written: one line for each event
	mail  chan message // what it has sent to people

	cause    incident.Cause // what it is to find out
	patience time.Duration  // how long to wait for it
}

// message is what people are sent of an incident.
type message struct {
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

// mailbox is how many messages fit: nobody waits for a reader.
const mailbox = 100

func (d *desk) deliver(m message) {
	select {
	case d.mail <- m:
	default:
	}
}

// event waits for the first lock failure that guard-monitor has stored.
func (d *desk) event(ctx context.Context) (found store.Received, err error) {
	err = until(ctx, "guard-monitor to have the event", func() (bool, error) {
		list, err := d.store.Recent(ctx, mailbox)
		for _, r := range list {
			if r.Event.Verdict != notify.VerdictUnavailable { // who asks again while Redis is away
				found = r
				return true, err
			}
		}
		return false, err
	})
	return found, err
}

// explanation waits until guard-monitor knows why an event came to pass.
func (d *desk) explanation(ctx context.Context, eventID string) (found incident.Incident, err error) {
	err = until(ctx, "guard-monitor to explain the event", func() (bool, error) {
		ev, _, err := d.store.Event(ctx, eventID)
		if err != nil || ev.Incident == "" {
			return false, err
		}
		found, err = d.store.Incident(ctx, ev.Incident)
		return err == nil && found.Cause == d.cause, err
	})
	if err != nil && found.Cause != "" {
		return found, fmt.Errorf("guard-monitor says that the cause is %s, not %s: %w", found.Cause, d.cause, err)
	}
	return found, err
}

// message waits until people have been told of the cause.
func (d *desk) message(ctx context.Context) (message, error) {
	for {
		select {
		case m := <-d.mail:
			if m.Labels["cause"] == string(d.cause) {
				return m, nil
			}
		case <-ctx.Done():
			return message{}, fmt.Errorf("wait for the alert: %w", context.Cause(ctx))
		}
	}
}

func (m message) summary() string { return m.Annotations[receiver.AnnotationSummary] }

// lines keeps what is written to it.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// all returns the lines that are whole.
func (l *lines) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	whole := l.text.String()
	whole = whole[:strings.LastIndexByte(whole, '\n')+1]
	return slices.Collect(strings.Lines(whole))
}

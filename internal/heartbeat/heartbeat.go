// Package heartbeat has what the outbox sends to guard-monitor between events.
//
//	err := publisher.PublishHeartbeat(ctx, heartbeat.Heartbeat{
//		ID: "1", Service: "orders", At: time.Now(), Interval: time.Minute,
//	})
package heartbeat

import (
	"context"
	"encoding/json"
	"time"

	"github.com/belaygo/belay/internal/cloudevent"
)

// Heartbeat reports that an instance lives and that its way to the monitor is open, so
// that silence means that nothing has failed. It is not stored on its way: a heartbeat
// that is late is of no use.
type Heartbeat struct {
	ID       string        `json:"-"`                  // printable ASCII
	Service  string        `json:"service"`            // the service that reports
	Instance string        `json:"instance,omitempty"` // the instance of that service
	At       time.Time     `json:"-"`                  // when it was sent
	Interval time.Duration `json:"interval_ms"`        // until the next one, above zero; carried in whole milliseconds
	Backlog  int           `json:"backlog"`            // events that wait to be forwarded, at least
	Switch   Switch        `json:"switch,omitzero"`    // zero: the instance has one engine, or knows nothing yet
	Messages Messages      `json:"messages,omitzero"`  // zero: the instance sends no messages, or could not count them
	Calls    Calls         `json:"calls,omitzero"`     // zero: the instance makes no calls, or could not count them
}

// A Publisher takes heartbeats. PublishHeartbeat returns nil once the monitor's side
// has it. It is safe for concurrent use.
type Publisher interface {
	PublishHeartbeat(ctx context.Context, h Heartbeat) error
}

// data is a Heartbeat as its tags have it: without the methods of Heartbeat.
type data Heartbeat

// Validate reports the first field that breaks the contract of a heartbeat,
// with an error that matches cloudevent.ErrInvalid.
func (h *Heartbeat) Validate() error {
	if err := cloudevent.CheckID(h.ID); err != nil {
		return err
	}
	switch {
	case h.Service == "":
		return cloudevent.Invalid("service is empty")
	case h.At.IsZero() || !cloudevent.Writable(h.At):
		return cloudevent.Invalid("time is missing, or outside the years 0 to 9999")
	case h.Interval < time.Millisecond:
		return cloudevent.Invalid("interval %v is below 1ms", h.Interval)
	case h.Backlog < 0:
		return cloudevent.Invalid("backlog %d is negative", h.Backlog)
	}
	if err := h.Switch.Validate(); err != nil {
		return err
	}
	if err := h.Messages.Validate(); err != nil {
		return err
	}
	return h.Calls.Validate()
}

// MarshalJSON returns the heartbeat as CloudEvents JSON, if it is valid.
func (h Heartbeat) MarshalJSON() ([]byte, error) {
	if err := h.Validate(); err != nil {
		return nil, err
	}
	d := data(h)
	d.Interval /= time.Millisecond
	d.Switch.Left /= time.Millisecond
	d.Messages.Oldest /= time.Millisecond
	d.Messages.OldestDead /= time.Millisecond
	d.Calls.Oldest /= time.Millisecond
	d.Calls.OldestUndecided /= time.Millisecond
	return json.Marshal(cloudevent.New(cloudevent.Heartbeat, h.ID, h.Service, h.Instance, h.At, d))
}

// UnmarshalJSON reads what MarshalJSON writes, as that of notify.Event does.
func (h *Heartbeat) UnmarshalJSON(b []byte) error {
	env, err := cloudevent.Open[data](b, cloudevent.Heartbeat)
	if err != nil {
		return err
	}
	read := Heartbeat(env.Data)
	read.ID, read.At = env.ID, env.Time
	if read.Interval, err = cloudevent.Millis("interval_ms", read.Interval); err != nil {
		return err
	}
	for name, d := range map[string]*time.Duration{
		"switch.left_ms":            &read.Switch.Left,
		"messages.oldest_ms":        &read.Messages.Oldest,
		"messages.oldest_dead_ms":   &read.Messages.OldestDead,
		"calls.oldest_ms":           &read.Calls.Oldest,
		"calls.oldest_undecided_ms": &read.Calls.OldestUndecided,
	} {
		if *d, err = cloudevent.Millis(name, *d); err != nil {
			return err
		}
	}
	if err := read.Validate(); err != nil {
		return err
	}
	*h = read
	return nil
}

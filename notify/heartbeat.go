package notify

import (
	"context"
	"encoding/json"
	"time"
)

const (
	// HeartbeatType is the CloudEvents type of a Heartbeat.
	HeartbeatType = "io.github.belaygo.heartbeat.v1"
	// HeartbeatSchema is the URL of the JSON Schema that the data of a
	// Heartbeat adheres to. The file is schema/heartbeat.v1.json.
	HeartbeatSchema = schemas + "heartbeat.v1.json#/$defs/data"
)

// Heartbeat tells the monitor that the way from an instance to the monitor is
// open, so that no news is good news. It is not stored on its way: a heartbeat
// that is late is of no use.
type Heartbeat struct {
	ID       string // printable ASCII
	Service  string // the service that reports
	Instance string // the instance of that service
	At       time.Time
	Interval time.Duration // until the next one, above zero; carried in whole milliseconds
	Backlog  int           // events that wait to be forwarded, at least
}

// A HeartbeatPublisher takes heartbeats. PublishHeartbeat returns nil once the
// monitor's side has it. It is safe for concurrent use.
type HeartbeatPublisher interface {
	PublishHeartbeat(ctx context.Context, h Heartbeat) error
}

// beat is Belay's part of a heartbeat's JSON.
type beat struct {
	Service  string `json:"service"`
	Instance string `json:"instance,omitempty"`
	Interval int64  `json:"interval_ms"`
	Backlog  int    `json:"backlog"`
}

// Validate reports the first field that breaks the contract of a heartbeat,
// with an error that matches ErrInvalidEvent.
func (h *Heartbeat) Validate() error {
	switch {
	case checkID(h.ID) != nil:
		return checkID(h.ID)
	case h.Service == "":
		return invalid("service is empty")
	case h.At.IsZero() || !writable(h.At):
		return invalid("time is missing, or outside the years 0 to 9999")
	case h.Interval < time.Millisecond:
		return invalid("interval %v is below 1ms", h.Interval)
	case h.Backlog < 0:
		return invalid("backlog %d is negative", h.Backlog)
	}
	return nil
}

// MarshalJSON returns the heartbeat as CloudEvents JSON, if it is valid.
func (h Heartbeat) MarshalJSON() ([]byte, error) {
	if err := h.Validate(); err != nil {
		return nil, err
	}
	return json.Marshal(envelope[beat]{
		SpecVersion:     specVersion,
		ID:              h.ID,
		Source:          source(h.Service, h.Instance),
		Type:            HeartbeatType,
		Time:            h.At.UTC(),
		DataContentType: dataType,
		DataSchema:      HeartbeatSchema,
		Data: beat{
			Service:  h.Service,
			Instance: h.Instance,
			Interval: h.Interval.Milliseconds(),
			Backlog:  h.Backlog,
		},
	})
}

// UnmarshalJSON reads what MarshalJSON writes, as that of Event does.
func (h *Heartbeat) UnmarshalJSON(b []byte) error {
	env, err := open[beat](b, HeartbeatType)
	if err != nil {
		return err
	}
	if err := checkMillis("interval_ms", env.Data.Interval); err != nil {
		return err
	}
	read := Heartbeat{
		ID:       env.ID,
		Service:  env.Data.Service,
		Instance: env.Data.Instance,
		At:       env.Time.UTC(),
		Interval: time.Duration(env.Data.Interval) * time.Millisecond,
		Backlog:  env.Data.Backlog,
	}
	if err := read.Validate(); err != nil {
		return err
	}
	*h = read
	return nil
}

package notify

import (
	"encoding/json"
	"math"
	"strconv"
	"time"
)

const (
	// EventType is the CloudEvents type of an Event. The number at its end
	// changes when a reader of the old one could not read the new.
	EventType = "io.github.belaygo.interception.v1"
	// EventSchema is the URL of the JSON Schema that the data of an Event
	// adheres to. The file is schema/interception.v1.json.
	EventSchema = schemas + "interception.v1.json#/$defs/data"
	// ContentType is the media type of an Event's JSON.
	ContentType = "application/cloudevents+json"

	schemas = "https://raw.githubusercontent.com/belaygo/belay/main/notify/schema/"
)

// payload is Belay's part of the JSON.
type payload struct {
	Verdict          Verdict   `json:"verdict"`
	Outcome          Outcome   `json:"outcome"`
	Service          string    `json:"service"`
	Instance         string    `json:"instance,omitempty"`
	Key              string    `json:"key,omitempty"`
	Table            string    `json:"table,omitempty"`
	Index            []string  `json:"index,omitempty"`
	Versions         *Versions `json:"versions,omitempty"`
	Owner            string    `json:"owner,omitempty"`
	Token            token     `json:"token,omitempty"`
	FirstToken       token     `json:"first_token,omitempty"`
	AcquiredAt       time.Time `json:"acquired_at,omitzero"`
	TTL              int64     `json:"ttl_ms,omitempty"`
	Deadline         time.Time `json:"deadline,omitzero"`
	Loss             Loss      `json:"loss,omitempty"`
	CaughtAt         time.Time `json:"caught_at"`
	Place            Place     `json:"place,omitzero"`
	HolderAtConflict Relation  `json:"holder_at_conflict,omitempty"`
	HolderOwner      string    `json:"holder_owner,omitempty"`
	Count            int       `json:"count"`
	TraceID          string    `json:"trace_id,omitempty"`
	Library          string    `json:"library,omitempty"`
}

// MarshalJSON returns the event as CloudEvents JSON. It refuses an event that
// Validate refuses, so that nobody writes what nobody can read. Bytes that are
// not UTF-8 become U+FFFD.
func (e Event) MarshalJSON() ([]byte, error) {
	if err := e.Validate(); err != nil {
		return nil, err
	}
	trace := e.Trace.Checked()
	return json.Marshal(envelope[payload]{
		SpecVersion:     specVersion,
		ID:              e.ID,
		Source:          source(e.Service, e.Instance),
		Type:            EventType,
		Subject:         e.Key,
		Time:            e.CaughtAt.UTC(),
		DataContentType: dataType,
		DataSchema:      EventSchema,
		TraceParent:     trace.Parent,
		TraceState:      trace.State,
		Data: payload{
			Verdict:          e.Verdict,
			Outcome:          e.Outcome,
			Service:          e.Service,
			Instance:         e.Instance,
			Key:              e.Key,
			Table:            e.Table,
			Index:            e.Index,
			Versions:         e.Versions,
			Owner:            e.Owner,
			Token:            token(e.Token),
			FirstToken:       token(e.FirstToken),
			AcquiredAt:       e.AcquiredAt.UTC(),
			TTL:              e.TTL.Milliseconds(),
			Deadline:         e.Deadline.UTC(),
			Loss:             e.Loss,
			CaughtAt:         e.CaughtAt.UTC(),
			Place:            e.Place,
			HolderAtConflict: e.HolderAtConflict,
			HolderOwner:      e.HolderOwner,
			Count:            e.Count,
			TraceID:          e.TraceID,
			Library:          e.Library,
		},
	})
}

// UnmarshalJSON reads what MarshalJSON writes, from any peer: it ignores
// members that it does not know and refuses everything else that is not a
// valid event, leaving e as it was. Call it directly on bytes from outside:
// json.Unmarshal reports broken JSON by itself, with errors that do not match
// ErrInvalidEvent.
func (e *Event) UnmarshalJSON(b []byte) error {
	env, err := open[payload](b, EventType)
	if err != nil {
		return err
	}
	if err := checkMillis("ttl_ms", env.Data.TTL); err != nil {
		return err
	}
	event := eventOf(&env)
	if err := event.Validate(); err != nil {
		return err
	}
	*e = event
	return nil
}

func eventOf(env *envelope[payload]) Event {
	d := &env.Data
	return Event{
		ID:               env.ID,
		Service:          d.Service,
		Instance:         d.Instance,
		Verdict:          d.Verdict,
		Outcome:          d.Outcome,
		Key:              d.Key,
		Table:            d.Table,
		Index:            d.Index,
		Versions:         d.Versions,
		Owner:            d.Owner,
		Token:            int64(d.Token),
		FirstToken:       int64(d.FirstToken),
		AcquiredAt:       d.AcquiredAt.UTC(),
		TTL:              time.Duration(d.TTL) * time.Millisecond,
		Deadline:         d.Deadline.UTC(),
		Loss:             d.Loss,
		CaughtAt:         d.CaughtAt.UTC(),
		Place:            d.Place,
		HolderAtConflict: d.HolderAtConflict,
		HolderOwner:      d.HolderOwner,
		Count:            d.Count,
		TraceID:          d.TraceID,
		Library:          d.Library,
		Trace:            Trace{Parent: env.TraceParent, State: env.TraceState}.Checked(),
	}
}

// checkMillis reports a duration that does not fit a time.Duration.
func checkMillis(name string, ms int64) error {
	switch {
	case ms > math.MaxInt64/int64(time.Millisecond):
		return invalid("%s %d is too large", name, ms)
	case ms < 0:
		return invalid("%s %d is negative", name, ms)
	}
	return nil
}

// token is a fencing token, which JSON carries as a decimal string.
type token int64

func (t token) MarshalText() ([]byte, error) {
	return strconv.AppendInt(nil, int64(t), 10), nil
}

func (t *token) UnmarshalText(b []byte) error {
	n, err := strconv.ParseInt(string(b), 10, 64)
	if err != nil || strconv.FormatInt(n, 10) != string(b) {
		return invalid("token %.40q is not a decimal number of 64 bits", b)
	}
	*t = token(n)
	return nil
}

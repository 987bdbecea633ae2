package notify

import (
	"encoding/json"
	"math"
	"net/url"
	"strconv"
	"time"
	"unicode/utf8"
)

const (
	// EventType is the CloudEvents type of an Event.
	EventType = "io.github.belaygo.interception.v1"
	// ContentType is the media type of an Event's JSON.
	ContentType = "application/cloudevents+json"

	specVersion = "1.0"
	dataType    = "application/json"
)

// envelope is the CloudEvents part of the JSON.
type envelope struct {
	SpecVersion     string    `json:"specversion"`
	ID              string    `json:"id"`
	Source          string    `json:"source"`
	Type            string    `json:"type"`
	Subject         string    `json:"subject,omitempty"`
	Time            time.Time `json:"time"`
	DataContentType string    `json:"datacontenttype"`
	Data            payload   `json:"data"`
}

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
	return json.Marshal(envelope{
		SpecVersion:     specVersion,
		ID:              e.ID,
		Source:          e.source(),
		Type:            EventType,
		Subject:         e.Key,
		Time:            e.CaughtAt.UTC(),
		DataContentType: dataType,
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

func (e *Event) source() string {
	s := "/belay/" + url.PathEscape(e.Service)
	if e.Instance != "" {
		s += "/" + url.PathEscape(e.Instance)
	}
	return s
}

// UnmarshalJSON reads what MarshalJSON writes, from any peer: it ignores
// members that it does not know and refuses everything else that is not a
// valid event, leaving e as it was. Call it directly on bytes from outside:
// json.Unmarshal reports broken JSON by itself, with errors that do not match
// ErrInvalidEvent.
func (e *Event) UnmarshalJSON(b []byte) error {
	if !utf8.Valid(b) {
		return invalid("not UTF-8")
	}
	var env envelope
	if err := json.Unmarshal(b, &env); err != nil {
		return invalid("%.200s", err.Error())
	}
	switch {
	case env.SpecVersion != specVersion:
		return invalid("specversion %.40q is not %q", env.SpecVersion, specVersion)
	case env.Type != EventType:
		return invalid("type %.80q is not %q", env.Type, EventType)
	case env.Source == "":
		return invalid("source is empty")
	case env.Data.TTL > math.MaxInt64/int64(time.Millisecond):
		return invalid("ttl_ms %d is too large", env.Data.TTL)
	case env.Data.TTL < 0:
		return invalid("ttl_ms %d is negative", env.Data.TTL)
	}
	event := env.event()
	if err := event.Validate(); err != nil {
		return err
	}
	*e = event
	return nil
}

func (env *envelope) event() Event {
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
		CaughtAt:         d.CaughtAt.UTC(),
		Place:            d.Place,
		HolderAtConflict: d.HolderAtConflict,
		HolderOwner:      d.HolderOwner,
		Count:            d.Count,
		TraceID:          d.TraceID,
		Library:          d.Library,
	}
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

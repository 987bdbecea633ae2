// Package cloudevent reads and writes the envelope of an event or a heartbeat: a
// CloudEvents 1.0 event in structured JSON.
//
//	env, err := cloudevent.Open[map[string]any](body, cloudevent.Event)
//	fmt.Println(env.ID, env.Data["verdict"], err)
package cloudevent

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"
)

// The types of what is sent. The number at the end of one changes when a reader
// of the old one could not read the new.
const (
	Event     = "io.github.belaygo.interception.v1"
	Heartbeat = "io.github.belaygo.heartbeat.v1"
)

const (
	// ContentType is the media type of an Envelope's JSON.
	ContentType = "application/cloudevents+json"

	specVersion = "1.0"
	dataType    = "application/json"
	schemas     = "https://raw.githubusercontent.com/belaygo/belay/main/notify/schema/"
)

// dataSchemas are the URLs of the JSON Schemas that the data of each type adheres
// to. The files are in notify/schema.
var dataSchemas = map[string]string{
	Event:     schemas + "interception.v1.json#/$defs/data",
	Heartbeat: schemas + "heartbeat.v1.json#/$defs/data",
}

// ErrInvalid is matched by every error of this package.
var ErrInvalid = errors.New("notify: invalid event")

// Invalid returns an error that matches ErrInvalid.
func Invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrInvalid, fmt.Sprintf(format, args...))
}

// An Envelope is the CloudEvents part of the JSON, around data of type T.
type Envelope[T any] struct {
	SpecVersion     string    `json:"specversion"`
	ID              string    `json:"id"`
	Source          string    `json:"source"`
	Type            string    `json:"type"`
	Subject         string    `json:"subject,omitempty"`
	Time            time.Time `json:"time"`
	DataContentType string    `json:"datacontenttype"`
	DataSchema      string    `json:"dataschema,omitempty"`
	TraceParent     string    `json:"traceparent,omitempty"`
	TraceState      string    `json:"tracestate,omitempty"`
	Data            T         `json:"data"`
}

// New returns an envelope around data, which a service and its instance report.
func New[T any](eventType, id, service, instance string, at time.Time, data T) *Envelope[T] {
	return &Envelope[T]{
		SpecVersion:     specVersion,
		ID:              id,
		Source:          source(service, instance),
		Type:            eventType,
		Time:            at.UTC(),
		DataContentType: dataType,
		DataSchema:      dataSchemas[eventType],
		Data:            data,
	}
}

// Open reads the JSON of a CloudEvent of the given type. Members that T and
// Envelope lack are ignored.
func Open[T any](b []byte, eventType string) (env Envelope[T], err error) {
	if !utf8.Valid(b) {
		return env, Invalid("not UTF-8")
	}
	if err := json.Unmarshal(b, &env); err != nil {
		return env, Invalid("%.200s", err.Error())
	}
	switch {
	case env.SpecVersion != specVersion:
		return env, Invalid("specversion %.40q is not %q", env.SpecVersion, specVersion)
	case env.Type != eventType:
		return env, Invalid("type %.80q is not %q", env.Type, eventType)
	case env.Source == "":
		return env, Invalid("source is empty")
	}
	env.Time = env.Time.UTC()
	env.TraceParent, env.TraceState = CheckTrace(env.TraceParent, env.TraceState)
	return env, CheckID(env.ID)
}

// CheckID reports an id that a database column or a message header would not keep
// unchanged.
func CheckID(id string) error {
	switch {
	case id == "":
		return Invalid("id is empty")
	case len(id) > 255:
		return Invalid("id is longer than 255 bytes")
	case strings.ContainsFunc(id, func(r rune) bool { return r <= ' ' || r > '~' }):
		return Invalid("id holds a character outside printable ASCII")
	}
	return nil
}

// source names the reporter. Source and id together identify an event.
func source(service, instance string) string {
	s := "/belay/" + url.PathEscape(service)
	if instance != "" {
		s += "/" + url.PathEscape(instance)
	}
	return s
}

package notify

import (
	"encoding/json"
	"net/url"
	"time"
	"unicode/utf8"
)

const (
	specVersion = "1.0"
	dataType    = "application/json"
)

// envelope is the CloudEvents part of the JSON, around data of type T.
type envelope[T any] struct {
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

// open reads the JSON of a CloudEvent of the given type.
func open[T any](b []byte, eventType string) (env envelope[T], err error) {
	if !utf8.Valid(b) {
		return env, invalid("not UTF-8")
	}
	if err := json.Unmarshal(b, &env); err != nil {
		return env, invalid("%.200s", err.Error())
	}
	switch {
	case env.SpecVersion != specVersion:
		return env, invalid("specversion %.40q is not %q", env.SpecVersion, specVersion)
	case env.Type != eventType:
		return env, invalid("type %.80q is not %q", env.Type, eventType)
	case env.Source == "":
		return env, invalid("source is empty")
	}
	return env, nil
}

// source names who reports. With the id it tells an event from all others.
func source(service, instance string) string {
	s := "/belay/" + url.PathEscape(service)
	if instance != "" {
		s += "/" + url.PathEscape(instance)
	}
	return s
}

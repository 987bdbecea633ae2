// Package ingest is what notify/webhook and guard-monitor share: the route that takes
// events, and its answers.
//
//	POST /api/v1/events
//	Authorization: Bearer TOKEN
//	Content-Type: application/cloudevents+json
//
//	202 {"taken":"0199a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b"}
//
// and the route that returns whether it would take the events of a service:
//
//	GET /api/v1/ingest?service=orders
//	Authorization: Bearer TOKEN
//
//	200 {"service":"orders"}
package ingest

import (
	"errors"
	"fmt"
	"strings"
)

const (
	// Path is the route of events, behind the address of the monitor.
	Path = "/api/v1/events"
	// CheckPath is the route of a check, which stores nothing.
	CheckPath = "/api/v1/ingest"
	// Service is the parameter in which the sender names its service. With an event it is
	// only for the log: an event whose token is wrong is not read.
	Service = "service"
)

const (
	// MaxBody is the size of the largest event that is taken, in bytes.
	MaxBody  = 256 << 10
	minToken = 16 // bytes
)

// An Answer is the JSON of every answer. It shows that a monitor answers: a proxy, or another
// server at the address, sends neither the id, nor Rejected, nor the service.
type Answer struct {
	Taken    string `json:"taken,omitempty"`    // the id of the event or heartbeat that the monitor has now
	Rejected bool   `json:"rejected,omitempty"` // the event can never be taken
	Service  string `json:"service,omitempty"`  // the service of a check, with every answer
	Error    string `json:"error,omitempty"`    // why it was not taken, or would not be
}

// CheckToken reports what is wrong with a token, and does not quote it. Other characters
// than these do not pass through a header unchanged.
func CheckToken(token string) error {
	switch {
	case len(token) < minToken:
		return fmt.Errorf("is shorter than %d bytes", minToken)
	case strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }):
		return errors.New("holds a blank, a line end or another character outside printable ASCII")
	}
	return nil
}

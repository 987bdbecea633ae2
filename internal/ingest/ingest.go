// Package ingest is what notify/webhook and guard-monitor share: the route that takes
// events, and its answers.
//
//	POST /api/v1/events
//	Authorization: Bearer TOKEN
//	Content-Type: application/cloudevents+json
//
//	202 {"taken":"0199a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b"}
package ingest

import (
	"errors"
	"fmt"
	"strings"
)

// Path is the route, behind the address of the monitor.
const Path = "/api/v1/events"

const (
	// MaxBody is the size of the largest event that is taken, in bytes.
	MaxBody  = 256 << 10
	minToken = 16 // bytes
)

// An Answer is the JSON of every answer. Only a monitor says it: a proxy, or another
// server at the address, knows neither the id nor Rejected.
type Answer struct {
	Taken    string `json:"taken,omitempty"`    // the id of the event or heartbeat that the monitor has now
	Rejected bool   `json:"rejected,omitempty"` // the event can never be taken
	Error    string `json:"error,omitempty"`    // why it was not taken
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

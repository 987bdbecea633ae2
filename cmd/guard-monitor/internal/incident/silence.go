package incident

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// ErrInvalidSilence is matched by the errors of Silence.Validate.
var ErrInvalidSilence = errors.New("incident: invalid silence")

// Silence keeps incidents from being alerted for a while. They are recorded all
// the same.
type Silence struct {
	ID        int64     `json:"id"` // given by the store
	Matchers  []Matcher `json:"matchers"`
	Start     time.Time `json:"start"`
	End       time.Time `json:"end"`     // required
	Author    string    `json:"author"`  // required
	Comment   string    `json:"comment"` // required
	CreatedAt time.Time `json:"created_at"`
	EndedBy   string    `json:"ended_by,omitempty"` // who ended it before its time
}

// Matcher compares one field of an incident.
type Matcher struct {
	Field  Field  `json:"field"`
	Value  string `json:"value"` // may hold * for any text, unless Exact
	Exact  bool   `json:"exact,omitempty"`
	Negate bool   `json:"negate,omitempty"`
}

// Field names what a Matcher compares. The set is closed.
type Field string

const (
	ByService  Field = "service"
	ByCause    Field = "cause"
	ByCluster  Field = "cluster"
	ByShard    Field = "shard"
	ByNode     Field = "node"
	BySeverity Field = "severity"
	ByIncident Field = "incident" // its ID
)

const (
	maxMatchers = 16
	maxValue    = 512 // bytes
	maxComment  = 2000
	maxSilence  = 366 * 24 * time.Hour
)

// Validate reports the first field that is wrong.
func (s Silence) Validate() error {
	switch {
	case len(s.Matchers) == 0:
		return fmt.Errorf("%w: no matchers, which would silence everything", ErrInvalidSilence)
	case len(s.Matchers) > maxMatchers:
		return fmt.Errorf("%w: %d matchers, at most %d", ErrInvalidSilence, len(s.Matchers), maxMatchers)
	case s.Start.IsZero() || s.End.IsZero():
		return fmt.Errorf("%w: start and end are required", ErrInvalidSilence)
	case !s.End.After(s.Start):
		return fmt.Errorf("%w: end is not after start", ErrInvalidSilence)
	case s.End.Sub(s.Start) > maxSilence:
		return fmt.Errorf("%w: longer than a year", ErrInvalidSilence)
	case s.Author == "" || len(s.Author) > maxValue:
		return fmt.Errorf("%w: author is empty or longer than %d bytes", ErrInvalidSilence, maxValue)
	case s.Comment == "" || len(s.Comment) > maxComment:
		return fmt.Errorf("%w: comment is empty or longer than %d bytes", ErrInvalidSilence, maxComment)
	}
	for _, m := range s.Matchers {
		if err := m.validate(); err != nil {
			return err
		}
	}
	return nil
}

func (m Matcher) validate() error {
	switch {
	case fields[m.Field] == nil:
		return fmt.Errorf("%w: field %.40q is unknown", ErrInvalidSilence, string(m.Field))
	case m.Value == "" || len(m.Value) > maxValue:
		return fmt.Errorf("%w: value of %s is empty or longer than %d bytes", ErrInvalidSilence, m.Field, maxValue)
	}
	return nil
}

// Active reports whether the silence holds at the time.
func (s Silence) Active(at time.Time) bool { return !at.Before(s.Start) && at.Before(s.End) }

// Silenced reports whether a silence holds for the incident.
func (i *Incident) Silenced() bool { return len(i.Silences) > 0 }

// Matches reports whether all matchers fit the incident.
func (s Silence) Matches(i Incident) bool {
	for _, m := range s.Matchers {
		value := fields[m.Field]
		if value == nil || m.fits(value(&i)) == m.Negate {
			return false
		}
	}
	return len(s.Matchers) > 0
}

func (m Matcher) fits(value string) bool {
	if m.Exact {
		return m.Value == value
	}
	return Glob(m.Value, value)
}

// fields are what a Matcher can compare.
var fields = map[Field]func(*Incident) string{
	ByService:  func(i *Incident) string { return i.Service },
	ByCause:    func(i *Incident) string { return string(i.Cause) },
	ByCluster:  func(i *Incident) string { return i.Cluster },
	ByShard:    func(i *Incident) string { return i.Shard },
	ByNode:     func(i *Incident) string { return i.Place.Node },
	BySeverity: func(i *Incident) string { return i.Severity() },
	ByIncident: func(i *Incident) string { return i.ID },
}

// Glob matches s against a pattern in which * stands for any text. It takes
// time in proportion to both lengths, whoever wrote the pattern.
func Glob(pattern, s string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == s
	}
	first, last := parts[0], parts[len(parts)-1]
	if len(s) < len(first)+len(last) || !strings.HasPrefix(s, first) || !strings.HasSuffix(s, last) {
		return false
	}
	s = s[len(first) : len(s)-len(last)]
	for _, part := range parts[1 : len(parts)-1] {
		at := strings.Index(s, part)
		if at < 0 {
			return false
		}
		s = s[at+len(part):]
	}
	return true
}

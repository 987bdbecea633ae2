package store

import (
	"context"
	"fmt"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/text"
)

// Notification is one attempt to notify people of an incident, or several that
// failed in a row. Texts must hold no secrets.
type Notification struct {
	ID       int64
	At       time.Time
	Receiver string         // its name in the configuration
	Incident string         // ID; empty for a test
	Reason   string         // why it was sent, such as "firing", "repeat" or "resolved"
	State    incident.State // of the incident then
	Cause    incident.Cause // of the incident then
	Cluster  string         // of the incident then
	Shard    string         // of the incident then
	Severity string         // of the incident then
	Attempts int
	Error    string // empty = delivered

	incident.Counts // of the incident then
}

// Notifications returns notifications of an incident (empty = of all), the
// newest first.
func (s *Store) Notifications(ctx context.Context, incidentID string, n int) ([]Notification, error) {
	var w where
	w.text("incident_id = ?", incidentID)
	return collect(ctx, s, "notifications", func(n *Notification) []any {
		return []any{&n.ID, instant{&n.At}, &n.Receiver, &n.Incident, &n.Reason, &n.State, &n.Attempts, &n.Error}
	}, `SELECT id, at, receiver, incident_id, reason, state, attempts, error FROM notifications`+
		w.String()+` ORDER BY id DESC LIMIT ?`, append(w.args, limit(n))...)
}

// AuditLine is something that a person did through the monitor.
type AuditLine struct {
	ID      int64     `json:"id"`
	At      time.Time `json:"at"`
	Who     string    `json:"who"`     // the name that they authenticated with
	Remote  string    `json:"remote"`  // where the request came from
	Action  string    `json:"action"`  // such as "acknowledge", "silence", "forget service"
	Subject string    `json:"subject"` // what it was done to
	Detail  string    `json:"detail,omitempty"`
}

// Audit stores a line.
func (s *Store) Audit(ctx context.Context, l AuditLine) error {
	_, err := s.write.ExecContext(ctx, `
		INSERT INTO audit (at, who, remote, action, subject, detail) VALUES (?, ?, ?, ?, ?, ?)`,
		micros(l.At), text.Clip(l.Who, MaxText), text.Clip(l.Remote, MaxText), text.Clip(l.Action, MaxText),
		text.Clip(l.Subject, MaxText), text.Clip(l.Detail, maxSentence))
	if err != nil {
		return fmt.Errorf("insert audit line: %w", err)
	}
	return nil
}

// AuditLines returns lines, the newest first.
func (s *Store) AuditLines(ctx context.Context, p Page) ([]AuditLine, error) {
	clause, args := p.clause()
	return s.auditLines(ctx, clause, args...)
}

// AuditOf returns the lines about a subject, the newest first.
func (s *Store) AuditOf(ctx context.Context, subject string, n int) ([]AuditLine, error) {
	return s.auditLines(ctx, clauseOfSubject, subject, limit(n))
}

const clauseOfSubject = ` WHERE subject = ? ORDER BY id DESC LIMIT ?`

func (s *Store) auditLines(ctx context.Context, clause string, args ...any) ([]AuditLine, error) {
	return collect(ctx, s, "audit lines", func(l *AuditLine) []any {
		return []any{&l.ID, instant{&l.At}, &l.Who, &l.Remote, &l.Action, &l.Subject, &l.Detail}
	}, `SELECT id, at, who, remote, action, subject, detail FROM audit`+clause, args...)
}

package store

import (
	"context"
	"database/sql"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/text"
)

// Told is what the last delivered notification to a receiver said of an incident.
type Told struct {
	At       time.Time
	State    incident.State
	Cause    incident.Cause
	Cluster  string // what an older version sent has that of the incident at the upgrade
	Shard    string // likewise
	Severity string // empty if an older version sent it
	// Counts were sent. An older version did not note some, which are below 0.
	incident.Counts
}

// Told is what a receiver knows that the notification was delivered to.
func (n Notification) Told() Told {
	return Told{At: n.At, State: n.State, Cause: n.Cause, Cluster: n.Cluster, Shard: n.Shard, Severity: n.Severity, Counts: n.Counts}
}

const queryTold = `
	SELECT n.incident_id, n.at, n.state, n.cause, n.cluster, n.shard, n.severity, n.failures, n.without, n.refused FROM json_each(?1) i
	JOIN notifications n ON n.id = (
		SELECT max(id) FROM notifications WHERE receiver = ?2 AND incident_id = i.value AND error = '')`

// Told returns the last notifications of incidents that were delivered to a receiver, by
// the incident's ID. An incident of which nothing was delivered is absent.
func (s *Store) Told(ctx context.Context, receiver string, incidents []string) (map[string]Told, error) {
	type row struct {
		id string
		Told
	}
	rows, err := collect(ctx, s, "notifications", func(r *row) []any {
		return []any{&r.id, instant{&r.At}, &r.State, &r.Cause, &r.Cluster, &r.Shard, &r.Severity, &r.Failures, &r.Without, &r.Refused}
	}, queryTold, document{incidents}, receiver)
	told := make(map[string]Told, len(rows))
	for _, r := range rows {
		told[r.id] = r.Told
	}
	return told, err
}

// AddNotifications stores the notifications of one message, all or none, so that
// after a crash a message counts as delivered whole or not at all.
func (s *Store) AddNotifications(ctx context.Context, list []Notification) error {
	return s.in(ctx, "insert notifications", func(tx *sql.Tx) error {
		for _, n := range list {
			_, err := tx.ExecContext(ctx, `
				INSERT INTO notifications (at, receiver, incident_id, reason, state, cause, cluster, shard, severity, failures, without, refused, attempts, error)
				VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
				micros(n.At), text.Clip(n.Receiver, MaxText), n.Incident, text.Clip(n.Reason, MaxText), n.State, n.Cause,
				text.Clip(n.Cluster, MaxText), text.Clip(n.Shard, MaxText), n.Severity, n.Failures, n.Without, n.Refused, n.Attempts, text.Clip(n.Error, maxSentence))
			if err != nil {
				return err
			}
		}
		return nil
	})
}

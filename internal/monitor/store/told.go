package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/belaygo/belay/internal/monitor/incident"
	"github.com/belaygo/belay/internal/monitor/text"
)

// Told is what a receiver was told of an incident last.
type Told struct {
	At    time.Time
	State incident.State
	Cause incident.Cause
}

// Told returns what a receiver was told, by incident: of those that are open,
// or were changed since.
func (s *Store) Told(ctx context.Context, receiver string, since time.Time) (map[string]Told, error) {
	type row struct {
		id string
		Told
	}
	// With a lone max(), SQLite takes the other columns from the row that has it.
	rows, err := collect(ctx, s.read, func(r scanner) (t row, err error) {
		var last, at int64
		err = r.Scan(&t.id, &last, &at, &t.State, &t.Cause)
		t.At = fromMicros(at)
		return t, err
	}, `SELECT n.incident_id, max(n.id), n.at, n.state, n.cause
		FROM notifications n JOIN incidents i ON i.id = n.incident_id
		WHERE n.receiver = ? AND n.error = '' AND (i.state <> 'resolved' OR i.updated_at >= ?)
		GROUP BY n.incident_id`, receiver, micros(since))
	if err != nil {
		return nil, fmt.Errorf("read notifications: %w", err)
	}
	told := make(map[string]Told, len(rows))
	for _, r := range rows {
		told[r.id] = r.Told
	}
	return told, nil
}

// AddNotifications stores what one message told, all or nothing: after a crash
// a message was told whole or not at all.
func (s *Store) AddNotifications(ctx context.Context, list []Notification) error {
	err := s.in(ctx, func(tx *sql.Tx) error {
		for _, n := range list {
			_, err := tx.ExecContext(ctx, `
				INSERT INTO notifications (at, receiver, incident_id, reason, state, cause, attempts, error)
				VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
				micros(n.At), text.Clip(n.Receiver, MaxText), n.Incident, text.Clip(n.Reason, MaxText), n.State, n.Cause,
				n.Attempts, text.Clip(n.Error, maxSentence))
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("insert notifications: %w", err)
	}
	return nil
}

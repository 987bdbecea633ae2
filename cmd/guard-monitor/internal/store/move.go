package store

import (
	"context"
	"database/sql"
	"errors"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
	"github.com/belaygo/belay/notify"
)

// mover puts events into incidents, out of those that they were in. What that adds to an
// incident is written once, at the end.
type mover struct {
	event, place, addKey, dropKey, total *sql.Stmt

	sums map[string]*sum // by incident
}

// sum is what is added to an incident.
type sum struct {
	events, keys int64
	effect       incident.Effect
	came         bool  // an event did
	first, last  int64 // of those, in Unix microseconds
}

func applyMoves(ctx context.Context, tx *sql.Tx, moves []incident.Move) error {
	m := &mover{sums: make(map[string]*sum)} // its statements are closed with the transaction
	for stmt, text := range map[**sql.Stmt]string{
		&m.event: `SELECT incident_id, key, verdict, outcome, count, caught_at FROM events WHERE seq = ?`,
		&m.place: `UPDATE events SET incident_id = ? WHERE seq = ?`,
		&m.addKey: `INSERT OR IGNORE INTO incident_keys (incident_id, key)
			SELECT id, ?2 FROM incidents WHERE id = ?1 AND keys + ?3 < ?4`,
		&m.dropKey: `DELETE FROM incident_keys WHERE incident_id = ?1 AND key = ?2
			AND NOT EXISTS (SELECT 1 FROM events WHERE incident_id = ?1 AND key = ?2)`,
		&m.total: `UPDATE incidents SET events = max(events + ?2, 0), keys = max(keys + ?3, 0), failures = max(failures + ?4, 0),
			undone = max(undone + ?5, 0), committed = max(committed + ?6, 0), unknowns = max(unknowns + ?7, 0),
			without = max(without + ?8, 0), refused = max(refused + ?9, 0),
			first_at = iif(?10, min(first_at, ?11), first_at), last_at = iif(?10, max(last_at, ?12), last_at)
			WHERE id = ?1`,
	} {
		var err error
		if *stmt, err = tx.PrepareContext(ctx, text); err != nil { //nolint:sqlclosecheck // the transaction closes it
			return err
		}
	}
	for _, move := range moves {
		if err := m.move(ctx, move); err != nil {
			return err
		}
	}
	return m.write(ctx)
}

func (m *mover) move(ctx context.Context, to incident.Move) error {
	var from sql.NullString
	var key string
	var verdict notify.Verdict
	var outcome notify.Outcome
	var count, caught int64
	err := m.event.QueryRowContext(ctx, to.Seq).Scan(&from, &key, &verdict, &outcome, &count, &caught)
	switch {
	case errors.Is(err, sql.ErrNoRows): // too old, and purged
		return nil
	case err != nil:
		return err
	case from.String == to.Incident:
		return nil
	}
	if _, err := m.place.ExecContext(ctx, to.Incident, to.Seq); err != nil {
		return err
	}
	effect := incident.EffectOf(verdict, outcome, count)
	if from.Valid {
		dropped, err := changed(m.dropKey.ExecContext(ctx, from.String, key))
		if err != nil {
			return err
		}
		m.sum(from.String).add(-1, -dropped, effect)
	}
	s := m.sum(to.Incident)
	added, err := changed(m.addKey.ExecContext(ctx, to.Incident, key, s.keys, maxKeys))
	if err != nil {
		return err
	}
	s.add(1, added, effect)
	if !s.came {
		s.came, s.first, s.last = true, caught, caught
	}
	s.first, s.last = min(s.first, caught), max(s.last, caught)
	return nil
}

func (m *mover) sum(id string) *sum {
	if m.sums[id] == nil {
		m.sums[id] = new(sum)
	}
	return m.sums[id]
}

// add counts events that came (1) or left (-1), with the keys that came or left with them.
func (s *sum) add(events, keys int64, e incident.Effect) {
	s.events += events
	s.keys += keys
	s.effect.Failures += events * e.Failures
	s.effect.Undone += events * e.Undone
	s.effect.Committed += events * e.Committed
	s.effect.Unknown += events * e.Unknown
	s.effect.Without += events * e.Without
	s.effect.Refused += events * e.Refused
}

func (m *mover) write(ctx context.Context) error {
	for id, s := range m.sums {
		e := s.effect
		_, err := m.total.ExecContext(ctx, id, s.events, s.keys, e.Failures, e.Undone, e.Committed, e.Unknown, e.Without, e.Refused,
			s.came, s.first, s.last)
		if err != nil {
			return err
		}
	}
	return nil
}

// changed returns how many rows a statement has changed.
func changed(res sql.Result, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

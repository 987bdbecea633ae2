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
	ctx context.Context // without an end, as that of inserter
	tx  *sql.Tx

	event, enter, addKey, dropKey *sql.Stmt // of events that leave an incident; nil until there is one

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
	m := &mover{ctx: context.WithoutCancel(ctx), tx: tx, sums: make(map[string]*sum)}
	others, err := m.placeNew(moves)
	if err != nil {
		return err
	}
	for _, move := range others {
		if err := m.move(move); err != nil {
			return err
		}
	}
	return m.write()
}

// prepare prepares the statements that move one event. The transaction closes them.
func (m *mover) prepare() error {
	if m.event != nil {
		return nil
	}
	for stmt, text := range map[**sql.Stmt]string{
		&m.event: `SELECT incident_id, key, verdict, outcome, count, caught_at FROM events WHERE seq = ?`,
		&m.enter: `UPDATE events SET incident_id = ? WHERE seq = ?`,
		&m.addKey: `INSERT OR IGNORE INTO incident_keys (incident_id, key)
			SELECT id, ?2 FROM incidents WHERE id = ?1 AND keys + ?3 < ?4`,
		&m.dropKey: `DELETE FROM incident_keys WHERE incident_id = ?1 AND key = ?2
			AND NOT EXISTS (SELECT 1 FROM events WHERE incident_id = ?1 AND key = ?2)`,
	} {
		var err error
		if *stmt, err = m.tx.PrepareContext(m.ctx, text); err != nil { //nolint:sqlclosecheck // the transaction closes it
			return err
		}
	}
	return nil
}

// move puts an event into an incident, out of the one that it is in.
func (m *mover) move(to incident.Move) error {
	if err := m.prepare(); err != nil {
		return err
	}
	var from sql.NullString
	var key string
	var verdict notify.Verdict
	var outcome notify.Outcome
	var count, caught int64
	err := m.event.QueryRowContext(m.ctx, to.Seq).Scan(&from, &key, &verdict, &outcome, &count, &caught)
	switch {
	case errors.Is(err, sql.ErrNoRows): // too old, and purged
		return nil
	case err != nil:
		return err
	case from.String == to.Incident:
		return nil
	}
	if _, err := m.enter.ExecContext(m.ctx, to.Incident, to.Seq); err != nil {
		return err
	}
	effect := incident.EffectOf(verdict, outcome, count)
	if from.Valid {
		dropped, err := changed(m.dropKey.ExecContext(m.ctx, from.String, key))
		if err != nil {
			return err
		}
		left := m.sum(from.String)
		left.keys -= dropped
		left.add(-1, effect)
	}
	s := m.sum(to.Incident)
	added, err := changed(m.addKey.ExecContext(m.ctx, to.Incident, key, s.keys, maxKeys))
	if err != nil {
		return err
	}
	s.keys += added
	s.come(caught, effect)
	return nil
}

func (m *mover) sum(id string) *sum {
	if m.sums[id] == nil {
		m.sums[id] = new(sum)
	}
	return m.sums[id]
}

// come counts an event that came, which was caught at a time in Unix microseconds.
func (s *sum) come(caught int64, e incident.Effect) {
	if !s.came {
		s.came, s.first, s.last = true, caught, caught
	}
	s.first, s.last = min(s.first, caught), max(s.last, caught)
	s.add(1, e)
}

// add counts an event that came (1) or left (-1).
func (s *sum) add(events int64, e incident.Effect) {
	s.events += events
	s.effect.Failures += events * e.Failures
	s.effect.Undone += events * e.Undone
	s.effect.Committed += events * e.Committed
	s.effect.Unknown += events * e.Unknown
	s.effect.Without += events * e.Without
	s.effect.Refused += events * e.Refused
}

func (m *mover) write() error {
	total, err := m.tx.PrepareContext(m.ctx, `UPDATE incidents SET events = max(events + ?2, 0), keys = max(keys + ?3, 0), failures = max(failures + ?4, 0),
		undone = max(undone + ?5, 0), committed = max(committed + ?6, 0), unknowns = max(unknowns + ?7, 0),
		without = max(without + ?8, 0), refused = max(refused + ?9, 0),
		first_at = iif(?10, min(first_at, ?11), first_at), last_at = iif(?10, max(last_at, ?12), last_at)
		WHERE id = ?1`)
	if err != nil {
		return err
	}
	defer total.Close()
	for id, s := range m.sums {
		e := s.effect
		_, err := total.ExecContext(m.ctx, id, s.events, s.keys, e.Failures, e.Undone, e.Committed, e.Unknown, e.Without, e.Refused,
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

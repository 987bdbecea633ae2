package store

import (
	"errors"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
	"github.com/belaygo/belay/notify"
)

// placeNew puts the events that are in no incident into theirs, with a statement for all events
// of an incident. It returns the other moves.
func (m *mover) placeNew(moves []incident.Move) (others []incident.Move, err error) {
	var ids []string
	seqs := make(map[string][]int64) // by incident
	for _, move := range moves {
		if seqs[move.Incident] == nil {
			ids = append(ids, move.Incident)
		}
		seqs[move.Incident] = append(seqs[move.Incident], move.Seq)
	}
	placed := make(map[int64]bool, len(moves))
	for _, id := range ids {
		if err := m.place(id, seqs[id], placed); err != nil {
			return nil, err
		}
	}
	for _, move := range moves {
		if !placed[move.Seq] {
			others = append(others, move)
		}
	}
	return others, nil
}

// place puts those of the events into an incident that are in none, and notes which these are.
func (m *mover) place(id string, seqs []int64, placed map[int64]bool) error {
	rows, err := m.tx.QueryContext(m.ctx, `UPDATE events SET incident_id = ? WHERE seq IN (SELECT value FROM json_each(?))
		AND incident_id IS NULL RETURNING seq, verdict, outcome, count, caught_at`, id, document{seqs})
	if err != nil {
		return err
	}
	defer rows.Close()
	var came []int64
	for rows.Next() {
		var seq, count, caught int64
		var verdict notify.Verdict
		var outcome notify.Outcome
		if err := rows.Scan(&seq, &verdict, &outcome, &count, &caught); err != nil {
			return err
		}
		placed[seq] = true
		came = append(came, seq)
		m.sum(id).come(caught, incident.EffectOf(verdict, outcome, count))
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil || len(came) == 0 {
		return err
	}
	keys, err := execIn(m.ctx, m.tx, `INSERT INTO incident_keys (incident_id, key)
		SELECT DISTINCT i.id, e.key FROM incidents i JOIN events e WHERE i.id = ?1 AND e.seq IN (SELECT value FROM json_each(?2))
			AND NOT EXISTS (SELECT 1 FROM incident_keys k WHERE k.incident_id = i.id AND k.key = e.key)
		LIMIT max(?3 - (SELECT coalesce(max(keys), 0) FROM incidents WHERE id = ?1), 0)`, id, document{came}, maxKeys)
	m.sum(id).keys += keys
	return err
}

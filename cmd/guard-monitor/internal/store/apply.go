package store

import (
	"context"
	"database/sql"
	"errors"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/text"
	"github.com/belaygo/belay/notify"
)

// Apply saves incidents and puts events into them, all or nothing. What an
// incident counts (events, failures, keys, unknown outcomes, first and last
// time, acknowledgement) is the store's: the fields of saved incidents are
// ignored, except that a new one begins with its times.
func (s *Store) Apply(ctx context.Context, saved []incident.Incident, moves []incident.Move) error {
	return s.in(ctx, "save incidents", func(tx *sql.Tx) error {
		for _, i := range saved {
			if err := saveIncident(ctx, tx, i); err != nil {
				return err
			}
		}
		for _, m := range moves {
			if err := move(ctx, tx, m); err != nil {
				return err
			}
		}
		return nil
	})
}

func saveIncident(ctx context.Context, tx *sql.Tx, i incident.Incident) error {
	_, err := tx.ExecContext(ctx, `
		INSERT INTO incidents (id, group_key, service, cause, cluster, shard, node, slot, state, confidence,
			first_at, last_at, seen_at, updated_at, opened_at, resolved_at, regressed,
			evidence, exemplar, doc_link, merged_into, rate)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET
			group_key = excluded.group_key, cause = excluded.cause, cluster = excluded.cluster,
			shard = excluded.shard, node = excluded.node, slot = excluded.slot, state = excluded.state, confidence = excluded.confidence,
			seen_at = excluded.seen_at, updated_at = excluded.updated_at, opened_at = excluded.opened_at, resolved_at = excluded.resolved_at,
			regressed = excluded.regressed, evidence = excluded.evidence, exemplar = excluded.exemplar,
			doc_link = excluded.doc_link, merged_into = excluded.merged_into, rate = excluded.rate,
			acked_by = CASE WHEN excluded.state = 'resolved' THEN '' ELSE acked_by END,
			acked_at = CASE WHEN excluded.state = 'resolved' THEN 0 ELSE acked_at END`,
		i.ID, i.Key, text.Clip(i.Service, MaxText), i.Cause, i.Cluster, i.Shard,
		text.Clip(i.Place.Node, MaxText), i.Place.Slot, i.State, i.Confidence,
		micros(i.FirstAt), micros(i.LastAt), micros(i.SeenAt), micros(i.UpdatedAt), micros(i.OpenedAt),
		micros(i.ResolvedAt), i.Regressed,
		document{i.Evidence}, i.Exemplar, i.DocLink, i.MergedInto, document{i.Rate})
	return err
}

// move puts one event into an incident, out of the one that it was in.
func move(ctx context.Context, tx *sql.Tx, m incident.Move) error {
	var from sql.NullString
	var key string
	var verdict notify.Verdict
	var outcome notify.Outcome
	var count, caught int64
	err := tx.QueryRowContext(ctx, `SELECT incident_id, key, verdict, outcome, count, caught_at FROM events WHERE seq = ?`, m.Seq).
		Scan(&from, &key, &verdict, &outcome, &count, &caught)
	switch {
	case errors.Is(err, sql.ErrNoRows): // too old, and purged
		return nil
	case err != nil:
		return err
	case from.String == m.Incident:
		return nil
	}
	if _, err := tx.ExecContext(ctx, `UPDATE events SET incident_id = ? WHERE seq = ?`, m.Incident, m.Seq); err != nil {
		return err
	}
	effect := incident.EffectOf(verdict, outcome, count)
	if from.Valid {
		if err := takeOut(ctx, tx, from.String, key, effect); err != nil {
			return err
		}
	}
	_, err = tx.ExecContext(ctx, `
		INSERT OR IGNORE INTO incident_keys (incident_id, key)
		SELECT id, ? FROM incidents WHERE id = ? AND keys < ?`, key, m.Incident, maxKeys)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `
		UPDATE incidents SET events = events + 1, failures = failures + ?, undone = undone + ?, committed = committed + ?,
			unknowns = unknowns + ?, without = without + ?, refused = refused + ?,
			keys = keys + changes(), first_at = min(first_at, ?), last_at = max(last_at, ?)
		WHERE id = ?`, effect.Failures, effect.Undone, effect.Committed, effect.Unknown, effect.Without, effect.Refused,
		caught, caught, m.Incident)
	return err
}

// takeOut undoes what an event added to an incident. Its times stay.
func takeOut(ctx context.Context, tx *sql.Tx, id, key string, e incident.Effect) error {
	_, err := tx.ExecContext(ctx, `
		DELETE FROM incident_keys WHERE incident_id = ? AND key = ?
			AND NOT EXISTS (SELECT 1 FROM events WHERE incident_id = ? AND key = ?)`, id, key, id, key)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `
		UPDATE incidents SET events = max(events - 1, 0), failures = max(failures - ?, 0),
			undone = max(undone - ?, 0), committed = max(committed - ?, 0), unknowns = max(unknowns - ?, 0),
			without = max(without - ?, 0), refused = max(refused - ?, 0), keys = max(keys - changes(), 0)
		WHERE id = ?`, e.Failures, e.Undone, e.Committed, e.Unknown, e.Without, e.Refused, id)
	return err
}

package store

import (
	"context"
	"database/sql"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/text"
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
		if len(moves) == 0 {
			return nil
		}
		return applyMoves(ctx, tx, moves)
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

package store

import (
	"context"
	"database/sql"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/text"
	"github.com/belaygo/belay/notify"
)

// doubtful chooses the events of an incident whose operations are in doubt: of one key, or,
// if that is empty, all.
const doubtful = ` WHERE incident_id = ?1 AND outcome = 'unknown' AND verdict <> 'degraded' AND (?2 = '' OR key = ?2)`

// Settle notes what became of operations of unknown outcome. From then on they count as
// what they became, and an incident without any more of them can end. It returns
// incident.ErrNotFound if the incident has no such operations, and incident.ErrChanged if all
// are to be settled and there are not x.Operations of them.
func (s *Store) Settle(ctx context.Context, id string, x incident.Settlement) error {
	if err := x.Validate(); err != nil {
		return err
	}
	x.Key = text.Clip(x.Key, MaxText)
	return s.in(ctx, "settle operations", func(tx *sql.Tx) error {
		if err := unchanged(ctx, tx, id, x); err != nil {
			return err
		}
		became, err := settled(ctx, tx, id, x)
		if err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `UPDATE events SET outcome = ?3`+doubtful, id, x.Key, x.Outcome); err != nil {
			return err
		}
		// Operations whose events were purged have no key: they are settled with the last one.
		// That they were in doubt keeps the incident critical. An older version did not note it.
		n, err := execIn(ctx, tx, `UPDATE incidents SET undone = undone + ?3, committed = committed + ?4, updated_at = ?5,
			rate = json_set(rate, '$.doubted', json('true')),
			unknowns = CASE WHEN ?2 = '' OR NOT EXISTS (SELECT 1 FROM events WHERE incident_id = ?1 AND outcome = 'unknown' AND verdict <> 'degraded')
				THEN 0 ELSE max(unknowns - ?6, 0) END
			WHERE id = ?1 AND unknowns > 0`, id, x.Key, became.Undone, became.Committed, micros(x.At), became.Failures)
		switch {
		case err != nil:
			return err
		case n == 0, x.Key != "" && became.Failures == 0:
			return incident.ErrNotFound
		}
		_, err = tx.ExecContext(ctx, `INSERT INTO settlements (at, incident_id, key, outcome, operations, made_by, note) VALUES (?, ?, ?, ?, ?, ?, ?)`,
			micros(x.At), id, x.Key, x.Outcome, became.Failures, text.Clip(x.By, MaxText), x.Note)
		return err
	})
}

// unchanged checks that a settlement of all operations is about those that were shown.
func unchanged(ctx context.Context, tx *sql.Tx, id string, x incident.Settlement) error {
	if x.Key != "" {
		return nil
	}
	var doubtful int64
	err := tx.QueryRowContext(ctx, `SELECT coalesce(max(unknowns), 0) FROM incidents WHERE id = ?`, id).Scan(&doubtful)
	switch {
	case err != nil:
		return err
	case doubtful == 0:
		return incident.ErrNotFound
	case doubtful != x.Operations:
		return incident.ErrChanged
	}
	return nil
}

// settled sums up what becomes of the operations that a settlement is about.
func settled(ctx context.Context, tx *sql.Tx, id string, x incident.Settlement) (sum incident.Effect, err error) {
	rows, err := tx.QueryContext(ctx, `SELECT verdict, sum(count) FROM events`+doubtful+` GROUP BY verdict`, id, x.Key)
	if err != nil {
		return sum, err
	}
	defer rows.Close()
	for rows.Next() {
		var verdict notify.Verdict
		var n int64
		if err := rows.Scan(&verdict, &n); err != nil {
			return sum, err
		}
		e := incident.EffectOf(verdict, x.Outcome, n)
		sum.Failures, sum.Undone, sum.Committed = sum.Failures+e.Failures, sum.Undone+e.Undone, sum.Committed+e.Committed
	}
	return sum, rows.Err()
}

// Settlements returns what was settled of an incident, the newest first.
func (s *Store) Settlements(ctx context.Context, id string, n int) ([]incident.Settlement, error) {
	return collect(ctx, s, "settlements", func(x *incident.Settlement) []any {
		return []any{instant{&x.At}, &x.Key, &x.Outcome, &x.Operations, &x.By, &x.Note}
	}, `SELECT at, key, outcome, operations, made_by, note FROM settlements WHERE incident_id = ? ORDER BY id DESC LIMIT ?`, id, limit(n))
}

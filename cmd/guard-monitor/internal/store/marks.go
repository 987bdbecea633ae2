package store

import (
	"context"
	"fmt"
	"time"
)

// Marks show whether there is something new: each grows with every change of its
// list.
type Marks struct {
	Events    int64 `json:"events"`    // Seq of the newest event
	Timeline  int64 `json:"timeline"`  // ID of the newest entry
	Incidents int64 `json:"incidents"` // when an incident was last changed, in Unix microseconds
	Audit     int64 `json:"audit"`     // ID of the newest line
	Switches  int64 `json:"switches"`  // when an instance last reported another record of a switch, in Unix microseconds
}

// Marks returns the marks of the moment. It reads five rows, however much is
// stored.
func (s *Store) Marks(ctx context.Context) (m Marks, err error) {
	err = s.read.QueryRowContext(ctx, `SELECT
		(SELECT coalesce(max(seq), 0) FROM events), (SELECT coalesce(max(id), 0) FROM timeline),
		(SELECT coalesce(max(updated_at), 0) FROM incidents), (SELECT coalesce(max(id), 0) FROM audit),
		(SELECT coalesce(max(learned_at), 0) FROM heartbeats WHERE epoch > 0)`).
		Scan(&m.Events, &m.Timeline, &m.Incidents, &m.Audit, &m.Switches)
	if err != nil {
		return m, fmt.Errorf("read marks: %w", err)
	}
	return m, nil
}

// Bounded is a count that stopped at a bound: if More, there are more than N.
type Bounded struct {
	N    int64
	More bool
}

// EventsPer counts the events that were caught in each of n steps from a time
// on, in each up to maxCounted.
func (s *Store) EventsPer(ctx context.Context, from time.Time, step time.Duration, n int) ([]Bounded, error) {
	counts, err := collect(ctx, s, "counts of events", func(b *Bounded) []any { return []any{&b.N} }, `WITH RECURSIVE steps(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM steps WHERE i + 1 < ?1)
		SELECT (SELECT count(*) FROM (
			SELECT 1 FROM events WHERE caught_at >= ?2 + i * ?3 AND caught_at < ?2 + (i + 1) * ?3 LIMIT ?4))
		FROM steps ORDER BY i`,
		n, from.UnixMicro(), step.Microseconds(), maxCounted+1)
	for i := range counts {
		b := &counts[i]
		b.N, b.More = min(b.N, maxCounted), b.N > maxCounted
	}
	return counts, err
}

package store

import (
	"context"
	"fmt"
	"time"
)

// Marks tell whether there is something new: each grows with every change of
// what it is about.
type Marks struct {
	Events    int64 // Seq of the newest event
	Timeline  int64 // ID of the newest entry
	Incidents int64 // when an incident was last changed, in Unix microseconds
	Audit     int64 // ID of the newest line
}

// Marks returns the marks of the moment. It reads four rows, however much is
// stored.
func (s *Store) Marks(ctx context.Context) (m Marks, err error) {
	err = s.read.QueryRowContext(ctx, `SELECT
		(SELECT coalesce(max(seq), 0) FROM events), (SELECT coalesce(max(id), 0) FROM timeline),
		(SELECT coalesce(max(updated_at), 0) FROM incidents), (SELECT coalesce(max(id), 0) FROM audit)`).
		Scan(&m.Events, &m.Timeline, &m.Incidents, &m.Audit)
	if err != nil {
		return m, fmt.Errorf("read marks: %w", err)
	}
	return m, nil
}

// EventsPer counts the events that were caught in each of n steps from a time
// on.
func (s *Store) EventsPer(ctx context.Context, from time.Time, step time.Duration, n int) ([]int64, error) {
	type bucket struct{ at, count int64 }
	list, err := collect(ctx, s.read, func(row scanner) (b bucket, err error) {
		err = row.Scan(&b.at, &b.count)
		return b, err
	}, `SELECT (caught_at - ?) / ? AS step, count(*) FROM events WHERE caught_at >= ? AND caught_at < ? GROUP BY step`,
		from.UnixMicro(), step.Microseconds(), from.UnixMicro(), from.Add(time.Duration(n)*step).UnixMicro())
	if err != nil {
		return nil, fmt.Errorf("count events: %w", err)
	}
	counts := make([]int64, n)
	for _, b := range list {
		if b.at >= 0 && b.at < int64(n) {
			counts[b.at] = b.count
		}
	}
	return counts, nil
}

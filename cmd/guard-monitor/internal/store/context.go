package store

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/text"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/watch"
)

// What an explanation of an event is made from: see incident.Store.

const maxRelated = 100

// The clauses of these queries, whose cost must not grow with the store.
const (
	// Those of the key, and those whose operation held it beside others.
	clauseOfWriters = ` WHERE seq IN (
			SELECT * FROM (SELECT seq FROM events
				WHERE key = ?1 AND caught_at BETWEEN ?2 AND ?3 AND outcome IN ('committed', 'unknown') ORDER BY caught_at DESC LIMIT ?4)
			UNION SELECT * FROM (SELECT k.seq FROM event_keys k CROSS JOIN events e ON e.seq = k.seq
				WHERE k.key = ?1 AND k.caught_at BETWEEN ?2 AND ?3 AND e.outcome IN ('committed', 'unknown') ORDER BY k.caught_at DESC LIMIT ?4))
		ORDER BY caught_at DESC LIMIT ?4`
	clauseOfDegraded = ` WHERE verdict = 'degraded' AND service = ? AND caught_at BETWEEN ? AND ? ORDER BY caught_at DESC LIMIT ?`
	// The last of each instance and node between two times, if it is the begin of
	// an outage and the instance was not silent since. With a lone max(), SQLite
	// takes the other columns from the row that has it.
	clauseOfOutages = ` WHERE seq IN (SELECT seq FROM (
			SELECT seq, outcome, service, instance, max(caught_at) FROM events
			WHERE verdict = 'degraded' AND service = ?1 AND caught_at >= ?3 AND caught_at < ?2 GROUP BY instance, node) o
		WHERE outcome = 'unknown' AND NOT EXISTS (SELECT 1 FROM heartbeats h
			WHERE h.service = o.service AND h.instance = o.instance AND h.received_at + 3 * h.every < ?2))
		ORDER BY caught_at DESC LIMIT ?4`
	// Arrival and seq have the same order, as long as the clock goes forward.
	clauseSince = ` WHERE seq >= (SELECT seq FROM events WHERE received_at >= ?1 ORDER BY received_at LIMIT 1)
		AND received_at >= ?1 AND seq > ?2 AND incident_id IS NOT NULL ORDER BY seq LIMIT ?3`
	// +id: by time, and then sorted, instead of through all by id.
	clauseOfTimeline = ` WHERE cluster = ? AND at >= ? ORDER BY +id DESC LIMIT ?`
)

// Writers returns the last events of operations that held a key and wrote, or may
// have, that were caught in a time, the oldest first.
func (s *Store) Writers(ctx context.Context, key string, from, to time.Time) ([]incident.Received, error) {
	return s.related(ctx, clauseOfWriters, text.Clip(key, MaxText), from, to)
}

// longestOutage is for how long the begin of an outage counts without its end,
// which an instance that ends in the outage does not report.
const longestOutage = 6 * time.Hour

// DegradedEvents returns the last degraded events of a service that were caught
// in a time, the oldest first, after those that began an outage up to 6 h before it
// that had not ended then.
func (s *Store) DegradedEvents(ctx context.Context, service string, from, to time.Time) ([]incident.Received, error) {
	service = text.Clip(service, MaxText)
	open, err := s.events(ctx, clauseOfOutages, service, from.UnixMicro(), from.Add(-longestOutage).UnixMicro(), maxRelated)
	if err != nil {
		return nil, err
	}
	slices.Reverse(open)
	list, err := s.related(ctx, clauseOfDegraded, service, from, to)
	return append(open, list...), err
}

func (s *Store) related(ctx context.Context, clause, value string, from, to time.Time) ([]incident.Received, error) {
	list, err := s.events(ctx, clause, value, from.UnixMicro(), to.UnixMicro(), maxRelated)
	slices.Reverse(list)
	return list, err
}

// GroupedSince returns events that are in incidents, that were stored since a
// time, and that come after the event seq, the oldest first.
func (s *Store) GroupedSince(ctx context.Context, since time.Time, seq int64, limit int) ([]incident.Received, error) {
	return s.events(ctx, clauseSince, since.UnixMicro(), seq, min(max(limit, 0), MaxRows))
}

// TimelineSince returns the last entries of a cluster since a time, the oldest
// first, at most MaxRows, and since when they are all: later if there are more,
// or if older ones were deleted.
func (s *Store) TimelineSince(ctx context.Context, cluster string, since time.Time) ([]watch.Entry, time.Time, error) {
	list, err := s.entries(ctx, clauseOfTimeline, cluster, since.UnixMicro(), MaxRows)
	if err != nil {
		return nil, since, err
	}
	slices.Reverse(list)
	if len(list) == MaxRows {
		since = list[0].At.Add(time.Microsecond)
	}
	kept, err := s.timelineKept(ctx)
	if kept.After(since) {
		since = kept
	}
	return list, since, err
}

// timelineKept returns since when the entries are kept that there were, zero if
// none was deleted: the first has the ID 1.
func (s *Store) timelineKept(ctx context.Context) (time.Time, error) {
	var at int64
	err := s.read.QueryRowContext(ctx, `SELECT coalesce((SELECT at FROM timeline WHERE id > 1
		AND id = (SELECT min(id) FROM timeline)), 0)`).Scan(&at)
	if err != nil {
		return time.Time{}, fmt.Errorf("read timeline: %w", err)
	}
	return fromMicros(at), nil
}

// TimelineAfter returns entries with a larger ID, the oldest first, at most
// MaxRows.
func (s *Store) TimelineAfter(ctx context.Context, id int64) ([]watch.Entry, error) {
	return s.entries(ctx, ` WHERE id > ? ORDER BY id LIMIT ?`, id, MaxRows)
}

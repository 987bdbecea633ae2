package store

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/belaygo/belay/internal/monitor/incident"
	"github.com/belaygo/belay/internal/monitor/text"
	"github.com/belaygo/belay/internal/monitor/watch"
	"github.com/belaygo/belay/notify"
)

// What an explanation of an event is made from: see incident.Store.

const maxRelated = 100

// EventsOfKey returns the last events of a key that were caught in a time, the
// oldest first.
func (s *Store) EventsOfKey(ctx context.Context, key string, from, to time.Time) ([]incident.Received, error) {
	return s.related(ctx, "key = ?", text.Clip(key, MaxText), from, to)
}

// DegradedEvents returns the last degraded events of a service that were caught
// in a time, the oldest first.
func (s *Store) DegradedEvents(ctx context.Context, service string, from, to time.Time) ([]incident.Received, error) {
	return s.related(ctx, "verdict = '"+string(notify.Degraded)+"' AND service = ?", text.Clip(service, MaxText), from, to)
}

func (s *Store) related(ctx context.Context, cond, value string, from, to time.Time) ([]incident.Received, error) {
	list, err := s.events(ctx, ` WHERE `+cond+` AND caught_at BETWEEN ? AND ? ORDER BY caught_at DESC LIMIT ?`,
		value, from.UnixMicro(), to.UnixMicro(), maxRelated)
	slices.Reverse(list)
	return list, err
}

// GroupedSince returns events that are in incidents, that were stored since a
// time, and that come after the event seq, the oldest first.
func (s *Store) GroupedSince(ctx context.Context, since time.Time, seq int64, limit int) ([]incident.Received, error) {
	return s.events(ctx, ` WHERE received_at >= ? AND seq > ? AND incident_id IS NOT NULL ORDER BY seq LIMIT ?`,
		since.UnixMicro(), seq, min(max(limit, 0), MaxRows))
}

// TimelineSince returns the last entries of a cluster since a time, the oldest
// first, at most MaxRows.
func (s *Store) TimelineSince(ctx context.Context, cluster string, since time.Time) ([]watch.Entry, error) {
	list, err := s.Timeline(ctx, TimelineFilter{Cluster: cluster, From: since, Limit: MaxRows})
	slices.Reverse(list)
	return list, err
}

// TimelineAfter returns entries with a larger ID, the oldest first, at most
// MaxRows.
func (s *Store) TimelineAfter(ctx context.Context, id int64) ([]watch.Entry, error) {
	list, err := collect(ctx, s.read, scanEntry, `SELECT `+entryColumns+` FROM timeline WHERE id > ? ORDER BY id LIMIT ?`, id, MaxRows)
	if err != nil {
		return nil, fmt.Errorf("read timeline: %w", err)
	}
	return list, nil
}

// OpenIncidents returns the incidents that are not resolved, the newest first,
// at most MaxRows.
func (s *Store) OpenIncidents(ctx context.Context) ([]incident.Incident, error) {
	return s.Incidents(ctx, IncidentFilter{Open: true, Limit: MaxRows})
}

package store

import (
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// What is asked every second goes by an index to the few rows that it wants,
// however large the store is.
func TestQueriesDoNotGoThroughTheWholeStore(t *testing.T) {
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "monitor.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	events, incidents := "SELECT "+eventColumns+" FROM events", "SELECT "+incidentColumns+" FROM incidents"
	for _, query := range []struct {
		text, index string
		args        int
	}{
		{events + ` WHERE incident_id IS NULL ORDER BY seq LIMIT ?`, "events_ungrouped", 1},
		{events + clauseOfWriters, "events_by_key", 4},
		{events + clauseOfDegraded, "events_degraded (service=? AND caught_at>? AND caught_at<?)", 4},
		{events + clauseOfOutages, "events_degraded (service=? AND caught_at>? AND caught_at<?)", 4},
		{events + clauseSince, "events_by_received_at", 3},
		{"SELECT " + entryColumns + " FROM timeline" + clauseOfTimeline, "timeline_by_at (at>?)", 3},
		{incidents + IncidentFilter{Open: true}.query(), "incidents_open", 0},
		{incidents + IncidentFilter{UpdatedSince: time.Now()}.query(), "incidents_by_update (updated_at>?)", 1},
		{"SELECT * FROM switches" + clauseOfSwitches, "switches_by_seen (seen_at>?)", 2},
		{"SELECT max(learned_at) FROM heartbeats WHERE epoch > 0", "heartbeats_by_switch", 0},
		{queryTold, "notifications_by_receiver (receiver=? AND incident_id=?)", 2},
	} {
		if plan := s.plan(t, query.text, query.args); !strings.Contains(plan, query.index) ||
			strings.Contains(plan, "autoindex_incidents_1\n") || strings.Contains(plan, "SEARCH notifications USING INDEX notifications_by_receiver (receiver=?)") {
			t.Errorf("%s\nis planned as\n%s\nwithout %s", query.text, plan, query.index)
		}
	}
}

func (f IncidentFilter) query() string {
	w := f.where()
	return w.String() + f.order()
}

func (s *Store) plan(t *testing.T, query string, args int) string {
	t.Helper()
	values := make([]any, args)
	for i := range values {
		values[i] = 1
	}
	var id, parent, unused int
	list, err := collect(t.Context(), s, "plan", func(step *string) []any { return []any{&id, &parent, &unused, step} },
		"EXPLAIN QUERY PLAN "+query, values...)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(list, "\n") + "\n"
}

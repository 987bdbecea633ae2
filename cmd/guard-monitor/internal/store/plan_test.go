package store

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
	"github.com/belaygo/belay/notify"
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
		{events + clauseOfUngrouped, "events_ungrouped", 1},
		{"SELECT seq FROM events" + clauseOfUngrouped, "events_ungrouped", 1},
		{events + clauseOfWriters, "events_by_key (key=? AND caught_at>? AND caught_at<?)", 4},
		{events + clauseOfWriters, "SEARCH k USING PRIMARY KEY (key=? AND caught_at>? AND caught_at<?)", 4},
		{events + clauseOfDegraded, "events_degraded (service=? AND caught_at>? AND caught_at<?)", 4},
		{events + clauseOfOutages, "events_degraded (service=? AND caught_at>? AND caught_at<?)", 4},
		{events + clauseSince, "events_by_received_at", 3},
		{"SELECT " + entryColumns + " FROM timeline" + clauseOfTimeline, "timeline_by_at (at>?)", 3},
		{incidents + clauseOfChanged, "incidents_by_revision (revision>?)", 2},
		{incidents + IncidentFilter{Open: true}.query(), "incidents_open", 0},
		{incidents + IncidentFilter{Service: "s"}.query(), "incidents_by_service (service=?)", 1},
		{incidents + IncidentFilter{Causes: []incident.Cause{incident.Failover}}.query(), "incidents_by_cause (cause=?)", 1},
		{"SELECT max(updated_at) FROM incidents", "incidents_by_update", 0},
		{events + EventFilter{Service: "s"}.query(), "events_by_service (service=?)", 2},
		{events + EventFilter{Service: "s", From: time.Now(), Verdicts: overlaps}.query(), "events_by_service (service=? AND caught_at>?)", 4},
		{events + strings.TrimSuffix(EventFilter{Key: "k"}.query(), byCaught), "events_by_key (key=?)", 3}, // and sorts those of the key
		{events + strings.TrimSuffix(EventFilter{ID: "e", Service: "s"}.query(), byCaught), "events_1 (event_id=?)", 2},
		{incidents + IncidentFilter{Open: true, Key: "k"}.query(), "events_by_incident (incident_id=? AND key=?)", 2},
		{incidents + IncidentFilter{Open: true, Key: "k"}.query(), "SEARCH k USING PRIMARY KEY (key=?)", 2},
		{incidents + strings.TrimSuffix(IncidentFilter{Event: "e"}.query(), byID), "sqlite_autoindex_events_1 (event_id=?)", 1},
		{events + EventFilter{Table: "t", Service: "s"}.query(), "events_by_table (table_name=?)", 3},
		{events + EventFilter{Incident: "i"}.query(), "events_of_incident (incident_id=?)", 2},
		{events + EventFilter{Verdicts: overlaps}.query(), "events_by_verdict (verdict=?)", 2},
		{events + EventFilter{Causes: []incident.Cause{incident.Failover}}.query(), "events_by_caught_at", 2},
		{events + EventFilter{From: time.Now(), To: time.Now()}.query(), "events_by_caught_at (caught_at>? AND caught_at<?)", 3},
		{"SELECT * FROM switches" + clauseOfSwitches, "switches_by_seen (seen_at>?)", 1},
		{"SELECT max(learned_at) FROM heartbeats WHERE epoch > 0", "heartbeats_by_switch", 0},
		{queryTold, "notifications_by_receiver (receiver=? AND incident_id=?)", 2},
		{"SELECT * FROM audit" + clauseOfSubject, "audit_by_subject (subject=?)", 2},
		{queryDoubtful, "events_doubtful (incident_id=?)", 2},
	} {
		if plan := s.plan(t, query.text, query.args); !strings.Contains(plan, query.index) ||
			(strings.HasSuffix(query.text, byCaught) || strings.HasSuffix(query.text, byID)) && strings.Contains(plan, "TEMP B-TREE") ||
			strings.Contains(plan, "autoindex_incidents_1\n") || strings.Contains(plan, "SEARCH notifications USING INDEX notifications_by_receiver (receiver=?)") {
			t.Errorf("%s\nis planned as\n%s\nwithout %s", query.text, plan, query.index)
		}
	}
}

func (f IncidentFilter) query() string {
	w := f.where()
	return w.String() + byID
}

func (f EventFilter) query() string {
	w := f.where()
	return w.String() + byCaught
}

var overlaps = []notify.Verdict{notify.VerdictOverlap}

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

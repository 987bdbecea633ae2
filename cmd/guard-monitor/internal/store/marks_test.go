package store

import (
	"path/filepath"
	"slices"
	"testing"
	"time"
)

func TestEventsPer(t *testing.T) {
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "monitor.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	from := time.Date(2026, 5, 4, 3, 0, 0, 0, time.UTC)
	// add adds n events that were caught at a time.
	add := func(at time.Time, n int) {
		t.Helper()
		_, err := s.write.ExecContext(t.Context(), `WITH RECURSIVE ids(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM ids WHERE i < ?1)
			INSERT INTO events (event_id, received_at, caught_at, service, instance, verdict, outcome, key, table_name, node, slot, count, body, body_size)
			SELECT ?2 || '-' || i, 0, ?2, 's', 'i', 'lost', 'refused', 'k', '', '', 0, 1, x'7b7d', 2 FROM ids`, n, at.UnixMicro())
		if err != nil {
			t.Fatal(err)
		}
	}
	add(from.Add(-time.Microsecond), 5)
	add(from, 1)
	add(from.Add(time.Minute-time.Microsecond), 2)
	add(from.Add(2*time.Minute), 3)
	add(from.Add(3*time.Minute), 7)
	want := []Bounded{{N: 3}, {}, {N: 3}}
	check := func() {
		t.Helper()
		if got, err := s.EventsPer(t.Context(), from, time.Minute, 3); err != nil || !slices.Equal(got, want) {
			t.Errorf("EventsPer = %v, %v, want %v", got, err, want)
		}
	}
	check()
	add(from.Add(time.Minute), maxCounted)
	want[1].N = maxCounted
	check()
	add(from.Add(90*time.Second), 1)
	want[1].More = true
	check()
}

package simdb

import "testing"

// TestRareSchedules compares what random schedules hardly ever come to.
func TestRareSchedules(t *testing.T) {
	insert := func(a, b string) sent {
		return sent{"INSERT INTO belay_outbox (event_id, body) VALUES (?, ?), (?, ?) ON DUPLICATE KEY UPDATE event_id = event_id", []any{a, "x", b, "y"}}
	}
	// A relay deletes the row of an event that is inserted again, behind another's lease of
	// it: the one has the row, the other its record in the index of events.
	s := &schedule{seed: 1, outbox: true, order: []int{0, 2, 2, 2, 1, 0, 2}, sessions: [][]sent{
		{insert("a", "b"), insert("a", "a")},
		{{"DELETE FROM belay_outbox WHERE " + these, []any{int64(1), "a"}}},
		{
			{sql: "SET TRANSACTION ISOLATION LEVEL READ COMMITTED"},
			{sql: "START TRANSACTION"},
			{"SELECT id, event_id, attempts " + due, []any{int64(0), int64(1), int64(1)}},
			{sql: "COMMIT"},
		},
	}}
	for _, p := range []Personality{MariaDB, MariaDBSnapshot, PostgreSQL} {
		same(t, newServer(t, p), p, s)
	}
}

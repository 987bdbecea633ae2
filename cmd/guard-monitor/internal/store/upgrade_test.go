package store_test

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
)

// older makes a file as the version of guard-monitor with so many migrations did.
func older(t *testing.T, path string, version int) {
	t.Helper()
	files, err := filepath.Glob("migrations/*.sql")
	if err != nil || len(files) < version {
		t.Fatalf("migrations %v, %v", files, err)
	}
	exec(t, path, `PRAGMA application_id = 0x42656c79;
		CREATE TABLE schema_version (version INTEGER PRIMARY KEY, applied_at INTEGER NOT NULL) STRICT`)
	for n, file := range files[:version] {
		stmts, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		exec(t, path, string(stmts)+fmt.Sprintf("; INSERT INTO schema_version VALUES (%d, 0)", n+1))
	}
}

// Incidents of an older file count operations, and the begin of an outage is none.
func TestUpgradeCountsEffects(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.db")
	older(t, path, 4)
	add := func(id string, unknowns, events int, list ...[2]string) {
		t.Helper()
		exec(t, path, fmt.Sprintf(`INSERT INTO incidents VALUES ('%s', 'k', 'orders', 'unknown', '', '', '', -1, 'ongoing', 'low',
			0, 0, 0, 0, 0, 0, %d, 0, 1, %d, 0, '[]', '', '', '', 0, '', '{}')`, id, events, unknowns))
		for n, e := range list {
			exec(t, path, fmt.Sprintf(`INSERT INTO events (event_id, received_at, caught_at, service, instance, verdict, outcome, key, table_name,
				node, slot, count, body, body_size, incident_id) VALUES ('%s-%d', 0, 0, 'orders', 'i', '%s', '%s', 'k', '', '', -1, 5, x'', 0, '%[1]s')`,
				id, n, e[0], e[1]))
		}
	}
	add("mixed", 1, 3, [2]string{"overlap", "refused"}, [2]string{"lost", "committed"}, [2]string{"unknown_commit", "unknown"})
	add("outage", 1, 2, [2]string{"degraded", "unknown"}, [2]string{"degraded", "committed"})
	add("purged", 2, 9, [2]string{"lost", "unknown"})

	s := openStore(t, path)
	for id, want := range map[string]incident.Effect{
		"mixed":  {Failures: 15, Undone: 5, Committed: 5, Unknown: 5, Doubtful: []string{"k"}},
		"outage": {Without: 5},
		"purged": {Unknown: 2, Doubtful: []string{"k"}},
	} {
		i, err := s.Incident(t.Context(), id)
		if err != nil || !reflect.DeepEqual(i.Effect, want) {
			t.Errorf("%s: effect %+v, %v, want %+v", id, i.Effect, err, want)
		}
	}
}

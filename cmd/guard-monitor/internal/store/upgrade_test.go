package store_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/store"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/watch"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/words"
	"github.com/belaygo/belay/notify"
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

// What looks at the file of an older version leaves its schema, or that version could not start again.
func TestAttachLeavesAnOlderFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.db")
	if _, err := store.Attach(t.Context(), path); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("no file: %v", err)
	}
	older(t, path, 17)
	for range 2 { // the first one has left it
		_, err := store.Attach(t.Context(), path)
		if !errors.Is(err, store.ErrOlderSchema) || !strings.Contains(err.Error(), "version 17") {
			t.Fatalf("an older file: %v, want %v", err, store.ErrOlderSchema)
		}
	}
	closeStore(t, openStore(t, path))
	s, err := store.Attach(t.Context(), path)
	if err != nil {
		t.Fatalf("a file that was migrated: %v", err)
	}
	closeStore(t, s)
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

// An incident of an older file that is critical stays so when its operations are settled, or
// its alert would have other labels.
func TestSettleKeepsSeverity(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.db")
	older(t, path, 8)
	exec(t, path, `INSERT INTO incidents (id, group_key, service, cause, cluster, shard, node, slot, state, confidence, first_at, last_at,
		seen_at, updated_at, opened_at, resolved_at, regressed, unknowns, evidence, doc_link, merged_into, rate)
		VALUES ('i', 'k', 'orders', 'unknown_commit', '', '', '', -1, 'ongoing', 'low', 0, 0, 0, 0, 0, 0, 0, 1, '[]', '', '',
			'{"start":"2026-05-04T03:02:01Z","now":3,"peak":9}')`)
	s := openStore(t, path)
	if err := s.Settle(t.Context(), "i", incident.Settlement{At: caught, Operations: 1, Outcome: notify.OutcomeCommitted, By: "ann"}); err != nil {
		t.Fatal(err)
	}
	if i := get(t, s, "i"); i.Severity() != "critical" || i.Effect.Unknown != 0 || i.Rate.Now != 3 {
		t.Errorf("severity %s, %+v, %+v", i.Severity(), i.Effect, i.Rate)
	}
}

// What an older version sent has the labels of its incident: nobody is sent the end of others.
func TestUpgradeKnowsLabels(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.db")
	older(t, path, 19)
	exec(t, path, `INSERT INTO incidents (id, group_key, service, cause, cluster, shard, node, slot, state, confidence, first_at, last_at,
			seen_at, updated_at, opened_at, resolved_at, regressed, evidence, doc_link, merged_into, rate)
			VALUES ('i', 'k', 'orders', 'failover', 'main', '0-5460', '', -1, 'ongoing', 'low', 0, 0, 0, 0, 0, 0, 0, '[]', '', '', '{}');
		INSERT INTO notifications (at, receiver, incident_id, reason, state, attempts, error) VALUES
			(0, 'ops', 'i', 'firing', 'ongoing', 1, ''), (0, 'ops', 'purged', 'firing', 'ongoing', 1, ''), (0, 'ops', '', 'test', '', 1, '')`)
	s := openStore(t, path)
	told, err := s.Told(t.Context(), "ops", []string{"i", "purged"})
	if err != nil || told["i"].Cluster != "main" || told["i"].Shard != "0-5460" || told["purged"].State != incident.Ongoing || told["purged"].Cluster != "" {
		t.Errorf("told %+v, %v", told, err)
	}
}

// Sentences that an older version stored are shown as they are, and what else was
// known beside them is kept.
func TestUpgradeKeepsSentences(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.db")
	older(t, path, 5)
	exec(t, path, `INSERT INTO timeline (at, since, kind, cluster, shard, node, peer, text, numbers)
		VALUES (7, 0, 'failover', 'main', '0-5460', 'b:1', 'a:1', 'b:1 took "over"', '{"new_epoch":7}'),
			(8, 0, 'policy', 'main', '', 'b:1', '', 'a kind that is gone', 'null')`)
	for id, evidence := range map[string]string{
		"some": `[{"at":"2026-05-04T03:02:01Z","node":"b:1","text":"b:1 took \"over\"","numbers":{"new_epoch":7}},{"at":"2026-05-04T03:02:01Z","text":"two"}]`,
		"none": `[]`, "null": `null`,
	} {
		exec(t, path, fmt.Sprintf(`INSERT INTO incidents (id, group_key, service, cause, cluster, shard, node, slot, state, confidence, first_at, last_at,
			seen_at, updated_at, opened_at, resolved_at, regressed, evidence, next_step, doc_link, merged_into, rate)
			VALUES ('%s', 'k', 'orders', 'failover', '', '', '', -1, 'ongoing', 'low', 0, 0, 0, 0, 0, 0, 0, '%s', 'look', '', '', '{}')`, id, evidence))
	}

	s := openStore(t, path)
	entries, err := s.TimelineAfter(t.Context(), 0)
	if err != nil || len(entries) != 2 || words.Chinese.Entry(entries[0]) != `b:1 took "over"` || entries[0].Kind != watch.Failover ||
		entries[0].Numbers[watch.NewEpoch] != 7 || words.English.Entry(entries[1]) != "a kind that is gone" {
		t.Errorf("timeline %+v, %v", entries, err)
	}
	if list := get(t, s, "some").Evidence; len(list) != 2 || list[0].Node != "b:1" || list[0].Kind != incident.Sentence ||
		list[0].At.IsZero() || words.Chinese.Evidence(list[0]) != `b:1 took "over"` || words.English.Evidence(list[1]) != "two" {
		t.Errorf("evidence %+v", list)
	}
	for _, id := range []string{"none", "null"} {
		if list := get(t, s, id).Evidence; len(list) != 0 {
			t.Errorf("%s: evidence %+v", id, list)
		}
	}
}

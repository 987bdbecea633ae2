package store_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/store"
	"github.com/belaygo/belay/notify"
)

func several(id, key string, keys ...string) notify.Event {
	ev := event(id)
	ev.Key, ev.Keys, ev.Outcome = key, keys, notify.OutcomeCommitted
	return ev
}

func ids(list []incident.Received) (found []string) {
	for _, r := range list {
		found = append(found, r.Event.ID)
	}
	return found
}

// An event is found by each key that its operation held.
func TestEventsAreFoundByEachOfTheirKeys(t *testing.T) {
	s := openStore(t, filepath.Join(t.TempDir(), "m.db"))
	add(t, s, several("1", "order:1"), nil, true)
	add(t, s, several("2", "sku:7", "order:1", "sku:7"), nil, true)
	add(t, s, several("3", "sku:8", "order:2", "sku:8"), nil, true)
	cut := several("4", "sku:9", "order:1", "sku:9")
	cut.Owner = fmt.Sprintf("%*d", store.MaxBody, 7)
	add(t, s, cut, nil, true)
	for key, want := range map[string][]string{"order:1": {"1", "2"}, "sku:7": {"2"}, "order:2": {"3"}, "order:3": nil} {
		list, err := s.Writers(t.Context(), key, caught.Add(-time.Second), caught.Add(time.Second))
		if got := ids(list); err != nil || !slices.Equal(slices.Sorted(slices.Values(got)), want) {
			t.Errorf("writers of %s: %v, %v, want %v", key, got, err, want)
		}
		list, err = s.Events(t.Context(), store.EventFilter{Key: key})
		if got := ids(list); err != nil || !slices.Equal(slices.Sorted(slices.Values(got)), want) {
			t.Errorf("events of %s: %v, %v, want %v", key, got, err, want)
		}
	}
	early, err := s.Writers(t.Context(), "order:1", caught.Add(time.Second), caught.Add(time.Minute))
	if err != nil || len(early) > 0 {
		t.Errorf("writers of another time: %v, %v", ids(early), err)
	}
}

// The keys of events go with them, and those of an older file are found, too.
func TestKeysOfEventsComeAndGoWithThem(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.db")
	older(t, path, 8)
	exec(t, path, `INSERT INTO events (event_id, received_at, caught_at, service, instance, verdict, outcome, key, table_name,
		node, slot, count, body, body_size) VALUES ('old', 1, 7, 'orders', 'i', 'lost', 'committed', 'a', '', '', -1, 1,
		CAST('{"data":{"keys":["a","b"]}}' AS BLOB), 1), ('new', 2, 7, 'orders', 'i', 'lost', 'committed', 'c', '', '', -1, 1, x'00', 1)`)
	s := openStore(t, path)
	list, err := s.Writers(t.Context(), "b", time.UnixMicro(0), time.UnixMicro(9))
	if got := ids(list); err != nil || !slices.Equal(got, []string{"old"}) {
		t.Errorf("writers of b: %v, %v", got, err)
	}
	if _, err := s.Purge(t.Context(), store.Retention{Events: time.Hour, Incidents: time.Hour, Rows: 100, Bytes: 1 << 30}, time.Now()); err != nil {
		t.Fatal(err)
	}
	closeStore(t, s)
	if n := count(t, path, `SELECT count(*) FROM event_keys`); n != 0 {
		t.Errorf("%d keys of purged events are left", n)
	}
}

func count(t *testing.T, path, query string) (n int) {
	t.Helper()
	if err := raw(t, path).QueryRowContext(t.Context(), query).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

package store_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/store"
)

func beatOf(service, sender string) incident.Heartbeat {
	return incident.Heartbeat{Service: service, Instance: "1", At: caught, Every: time.Second, ReceivedAt: caught, Sender: sender}
}

// A sender that invents services is stopped. Others are not, nor are its known services.
func TestServicesOfASenderAreBounded(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "m.db")
	s := openStore(t, path)
	exec(t, path, fmt.Sprintf(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)
		INSERT INTO services SELECT 'job-' || i, 'ci', 0 FROM n`, store.MaxServices-1))
	noError(t, s.AddHeartbeat(t.Context(), beatOf("last", "ci")))
	if err := s.AddHeartbeat(t.Context(), beatOf("ghost", "ci")); !errors.Is(err, store.ErrManyServices) {
		t.Errorf("one heartbeat more: %v, want %v", err, store.ErrManyServices)
	}
	ev := event("1")
	ev.Service = "ghost"
	if _, err := s.Add(t.Context(), ev, nil, "ci"); !errors.Is(err, store.ErrManyServices) {
		t.Errorf("an event of one service more: %v, want %v", err, store.ErrManyServices)
	}
	ev.Service = "job-7"
	if added, err := s.Add(t.Context(), ev, nil, "ci"); !added || err != nil {
		t.Errorf("an event of a known service: %v, %v", added, err)
	}
	noError(t, s.AddHeartbeat(t.Context(), beatOf("ghost", "shop")))

	forgotten, err := s.Forget(t.Context(), "job-*")
	if err != nil || len(forgotten) != store.MaxServices-1 {
		t.Fatalf("forgot %d services, %v; want %d", len(forgotten), err, store.MaxServices-1)
	}
	noError(t, s.AddHeartbeat(t.Context(), beatOf("another", "ci")))
	beats, err := s.Heartbeats(t.Context())
	var names []string
	for _, h := range beats {
		names = append(names, h.Service)
	}
	if want := []string{"another", "ghost", "last"}; err != nil || !slices.Equal(names, want) {
		t.Errorf("heartbeats of %q, %v; want %q", names, err, want)
	}
	if forgotten, err := s.Forget(t.Context(), "job-*"); err != nil || len(forgotten) != 0 {
		t.Errorf("forgot %q again, %v", forgotten, err)
	}
}

// The services of an older file stay known, and count for no sender.
func TestUpgradeKnowsTheServices(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "m.db")
	older(t, path, 8)
	exec(t, path, `INSERT INTO heartbeats (service, instance, at, every, received_at) VALUES ('beats', 'i', 0, 1, 0), ('both', 'i', 0, 1, 0)`)
	for n, service := range []string{"both", "reports", "reports", "zebra"} {
		exec(t, path, fmt.Sprintf(`INSERT INTO events (event_id, received_at, caught_at, service, instance, verdict, outcome, key, table_name, node, slot, count, body, body_size)
			VALUES (%d, 0, 0, '%s', 'i', 'lost', 'unknown', 'k', '', '', -1, 1, x'', 0)`, n, service))
	}
	s := openStore(t, path)
	if known, err := s.Forget(t.Context(), "*"); err != nil || fmt.Sprint(known) != "[beats both reports zebra]" {
		t.Errorf("known are %q, %v", known, err)
	}
}

// A service of which nothing is kept no longer counts.
func TestPurgeForgetsServices(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "m.db")
	s := openStore(t, path)
	exec(t, path, `INSERT INTO services VALUES ('gone', 'ci', 0)`)
	noError(t, s.AddHeartbeat(t.Context(), beatOf("beats", "ci")))
	add(t, s, event("1"), nil, true)
	purge(t, s, store.Retention{}, time.Now())
	if known, err := s.Forget(t.Context(), "*"); err != nil || fmt.Sprint(known) != "[beats orders]" {
		t.Errorf("known are %q, %v", known, err)
	}
}

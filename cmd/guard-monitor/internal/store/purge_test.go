package store_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/store"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/watch"
)

func purge(t *testing.T, s *store.Store, r store.Retention, now time.Time) int64 {
	t.Helper()
	if r.Rows == 0 {
		r.Rows = 1_000_000
	}
	if r.Bytes == 0 {
		r.Bytes = 1 << 30
	}
	r.Events, r.Incidents = 30*24*time.Hour, 365*24*time.Hour
	n, err := s.Purge(t.Context(), r, now)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestPurgeByAge(t *testing.T) {
	s := temp(t)
	now := time.Now()
	add(t, s, event("1"), nil, true)
	add(t, s, event("2"), nil, true)
	resolved := anIncident("b")
	resolved.State, resolved.UpdatedAt = incident.Resolved, now
	open := anIncident("a")
	open.UpdatedAt = now
	apply(t, s, []incident.Incident{open, resolved}, incident.Move{Seq: 1, Incident: "b"})
	if err := s.AddEntries(t.Context(), []watch.Entry{{At: now, Kind: watch.Down}, {At: now, Kind: watch.Up}}); err != nil {
		t.Fatal(err)
	}
	for _, instance := range []string{"old", "new"} {
		h := incident.Heartbeat{Service: "orders", Instance: instance, ReceivedAt: now}
		if instance == "new" {
			h.ReceivedAt = now.Add(time.Second)
		}
		if err := s.AddHeartbeat(t.Context(), h); err != nil {
			t.Fatal(err)
		}
	}
	if n := purge(t, s, store.Retention{}, now.Add(time.Hour)); n != 0 {
		t.Errorf("%d rows were purged that are young", n)
	}
	if n := purge(t, s, store.Retention{}, now.AddDate(0, 0, 31)); n != 3 {
		t.Errorf("%d rows were purged after a month, want the event, the entry and an instance", n)
	}
	purge(t, s, store.Retention{}, now.AddDate(2, 0, 0))
	if _, err := s.Incident(t.Context(), "b"); !errors.Is(err, incident.ErrNotFound) {
		t.Errorf("an incident is kept for ever: %v", err)
	}
	get(t, s, "a") // an open one is
	if beats, err := s.Heartbeats(t.Context()); err != nil || len(beats) != 1 {
		t.Errorf("heartbeats %v, %v: the last of a service must stay, or nobody would miss it", beats, err)
	}
}

// A number that was given is not given again, or what has it would not be taken
// for new.
func TestPurgeKeepsTheNumbers(t *testing.T) {
	s := temp(t)
	now := time.Now()
	entries := func(at time.Time) []watch.Entry {
		t.Helper()
		list := []watch.Entry{{At: at, Kind: watch.Down}, {At: at, Kind: watch.Up}}
		if err := s.AddEntries(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		return list
	}
	add(t, s, event("1"), nil, true)
	last := entries(now)[1].ID
	purge(t, s, store.Retention{}, now.AddDate(1, 0, 0))
	add(t, s, event("2"), nil, true)
	if first := entries(now)[0].ID; first <= last {
		t.Errorf("entry %d comes after %d", first, last)
	}
	if m, err := s.Marks(t.Context()); err != nil || m.Events != 2 {
		t.Errorf("marks %+v, %v, want the second event", m, err)
	}
}

// Where events are too large to be kept, the timeline that explains the rest is
// not deleted with them.
func TestPurgeByBytesKeepsTheTimeline(t *testing.T) {
	s := temp(t)
	now := time.Now()
	list := []watch.Entry{{At: now.AddDate(0, 0, -2), Kind: watch.Resharding, Cluster: "main"}}
	for range 30 {
		list = append(list, watch.Entry{At: now.Add(-time.Minute), Kind: watch.Failover, Cluster: "main"})
	}
	if err := s.AddEntries(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	body := []byte(strings.Repeat("x", 60<<10))
	for n := range 400 { // 24 MB
		add(t, s, event(fmt.Sprint(n)), body, true)
	}
	if _, since, err := s.TimelineSince(t.Context(), "main", now.AddDate(-1, 0, 0)); err != nil || !since.Equal(now.AddDate(-1, 0, 0)) {
		t.Errorf("whole since %v, %v: nothing was deleted", since, err)
	}
	purge(t, s, store.Retention{Bytes: 16 << 20}, now)
	left, since, err := s.TimelineSince(t.Context(), "main", now.AddDate(-1, 0, 0))
	if err != nil || len(left) != 30 {
		t.Errorf("%d entries are left, %v, want those that are young", len(left), err)
	} else if !since.Equal(left[0].At) {
		t.Errorf("whole since %v, want %v", since, left[0].At)
	}
	for range 10 { // 20 MB
		list := make([]watch.Entry, store.MaxRows)
		for i := range list {
			list[i] = watch.Entry{At: now, Kind: watch.Resharding, Cluster: "main", Names: map[string]string{watch.Reason: strings.Repeat("x", 2000)}}
		}
		if err := s.AddEntries(t.Context(), list); err != nil {
			t.Fatal(err)
		}
	}
	purge(t, s, store.Retention{Bytes: 16 << 20}, now)
	if size, err := s.Size(t.Context()); err != nil || size.Bytes > 16<<20 {
		t.Errorf("size %+v, %v", size, err)
	}
	if n := len(recent(t, s, 1000)); n != 1 {
		t.Errorf("%d events are left", n)
	}
}

// However many there are, the last of a silent service stays, or its silence
// would be over.
func TestPurgeByRowsKeepsTheLastHeartbeat(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.db")
	s := openStore(t, path)
	now := time.Now()
	beat := func(service, instance string, at time.Time) {
		t.Helper()
		if err := s.AddHeartbeat(t.Context(), incident.Heartbeat{Service: service, Instance: instance, ReceivedAt: at}); err != nil {
			t.Fatal(err)
		}
	}
	beat("silent", "1", now.Add(-time.Hour))
	beat("silent", "2", now.Add(-time.Minute))
	if _, err := raw(t, path).ExecContext(t.Context(), `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
		INSERT INTO heartbeats (service, instance, at, every, received_at) SELECT 'orders', i, 0, 0, ? + i FROM n`, incident.MaxHeartbeats+10, now.UnixMicro()); err != nil {
		t.Fatal(err)
	}
	beat("orders", "0", now.Add(time.Second))
	purge(t, s, store.Retention{}, now)
	if beats, err := s.Heartbeats(t.Context()); err != nil || len(beats) != 2 || beats[1].Instance != "2" {
		t.Errorf("heartbeats %v, %v, want both services", beats, err)
	}
}

func TestPurgeByRows(t *testing.T) {
	s := temp(t)
	const rows = 1150
	for n := range rows {
		add(t, s, event(fmt.Sprint(n)), nil, true)
	}
	if n := purge(t, s, store.Retention{Rows: 100}, time.Now()); n != rows-100 {
		t.Errorf("%d rows were purged, want %d", n, rows-100)
	}
	left := recent(t, s, rows)
	if len(left) != 100 || left[0].Event.ID != fmt.Sprint(rows-1) || left[99].Event.ID != fmt.Sprint(rows-100) {
		t.Errorf("%d rows are left, from %s", len(left), left[0].Event.ID)
	}
}

func TestPurgeByBytes(t *testing.T) {
	s := temp(t)
	body := []byte(strings.Repeat("x", 60<<10))
	for n := range 400 { // 24 MB
		add(t, s, event(fmt.Sprint(n)), body, true)
	}
	before, err := s.Size(t.Context())
	if err != nil || before.Bytes < 20<<20 || before.Oldest.IsZero() {
		t.Fatalf("size %+v, %v", before, err)
	}
	const limit = 16 << 20
	purge(t, s, store.Retention{Bytes: limit}, time.Now())
	after, err := s.Size(t.Context())
	if err != nil || after.Bytes > limit {
		t.Errorf("size %+v, %v, want at most %d bytes", after, err, limit)
	}
	if left := recent(t, s, 1000); len(left) < 200 || left[0].Event.ID != "399" {
		t.Errorf("%d events are left, want most of them, and the newest", len(left))
	}
}

func TestRetentionRefuses(t *testing.T) {
	s := temp(t)
	for _, r := range []store.Retention{
		{Incidents: 1, Rows: 1, Bytes: 1}, {Events: -1, Incidents: 1, Rows: 1, Bytes: 1},
		{Events: 1, Rows: 1, Bytes: 1}, {Events: 1, Incidents: 1, Bytes: 1}, {Events: 1, Incidents: 1, Rows: 1},
	} {
		if n, err := s.Purge(t.Context(), r, time.Now()); err == nil || n != 0 {
			t.Errorf("%+v: %v, %d rows deleted; want an error that names the fields", r, err, n)
		}
	}
}

// What receivers were told of open incidents last is kept, however old and
// however many: or they would be told all over again.
func TestPurgeKeepsWhatWasTold(t *testing.T) {
	s := temp(t)
	now := time.Now()
	const open = 30
	var ids []string
	for n := range open {
		i := anIncident(fmt.Sprintf("open-%02d", n))
		ids = append(ids, i.ID)
		i.State, i.UpdatedAt = incident.Ongoing, now
		apply(t, s, []incident.Incident{i})
		for range 4 { // the first and its repeats
			err := s.AddNotifications(t.Context(), []store.Notification{{At: now, Receiver: "night", Incident: i.ID, State: i.State}})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	purge(t, s, store.Retention{Rows: 100}, now.AddDate(2, 0, 0))
	told, err := s.Told(t.Context(), "night", ids)
	if err != nil || len(told) != open {
		t.Errorf("%d incidents are known to be told, %v; want %d", len(told), err, open)
	}
	if list, err := s.Notifications(t.Context(), "", 1000); err != nil || len(list) > open+10 {
		t.Errorf("%d notifications are left, %v", len(list), err)
	}
}

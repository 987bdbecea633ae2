package store_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/store"
	"github.com/belaygo/belay/notify"
)

func TestAddAndReopen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.db")
	before := time.Now().Add(-time.Second)
	want := event("1")
	want.Key, want.Table, want.Index = "order:订单-1", "orders", []string{"no"}
	want.Versions = &notify.Versions{Expected: 3, Found: 4}
	want.Owner, want.Token = "owner:1", math.MaxInt64
	want.AcquiredAt, want.TTL = caught.Add(-time.Second), 30*time.Second
	want.HolderAtConflict, want.HolderOwner = notify.HolderOther, "owner:2"

	s := openStore(t, path)
	add(t, s, want, nil, true)
	closeStore(t, s)
	s = openStore(t, path)
	add(t, s, want, nil, false)
	add(t, s, event("2"), nil, true)

	got := recent(t, s, 10)
	if len(got) != 2 || got[0].Event.ID != "2" {
		t.Fatalf("Recent = %+v, want the event 2, then 1", got)
	}
	if !reflect.DeepEqual(got[1].Event, want) {
		t.Errorf("stored  %+v\nwant    %+v", got[1].Event, want)
	}
	if at := got[1].At; at.Before(before) || at.After(time.Now().Add(time.Second)) {
		t.Errorf("received at %v, want about now", at)
	}
}

func TestAddSameIDTogether(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.db")
	stores := []*store.Store{openStore(t, path), openStore(t, path)} // as two processes
	var added atomic.Int32
	var wg sync.WaitGroup
	for i := range 32 {
		wg.Go(func() {
			ok, err := stores[i%2].Add(t.Context(), event("same"), nil, "")
			if err != nil {
				t.Errorf("Add: %v", err)
			}
			if ok {
				added.Add(1)
			}
		})
	}
	wg.Wait()
	if n := added.Load(); n != 1 {
		t.Errorf("%d Adds of one event report true, want 1", n)
	}
	if got := recent(t, stores[0], 10); len(got) != 1 {
		t.Errorf("%d rows, want 1", len(got))
	}
}

func TestAddRefuses(t *testing.T) {
	s := openStore(t, filepath.Join(t.TempDir(), "m.db"))
	ev := event("1")
	ev.Verdict = "nonsense"
	if _, err := s.Add(t.Context(), ev, nil, ""); !errors.Is(err, notify.ErrInvalidEvent) {
		t.Errorf("Add of an invalid event: %v, want %v", err, notify.ErrInvalidEvent)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if ok, err := s.Add(ctx, event("2"), nil, ""); ok || !errors.Is(err, context.Canceled) {
		t.Errorf("Add with a cancelled context = %v, %v", ok, err)
	}
	if got := recent(t, s, 10); len(got) != 0 {
		t.Errorf("stored %+v, want nothing", got)
	}
}

func TestHostileText(t *testing.T) {
	s := openStore(t, filepath.Join(t.TempDir(), "m.db"))
	for i, text := range []string{
		`'); DROP TABLE events; --`, "a\x00b", "\x1b[2J\n\u202e", "<script>", "\ufffd", "锁", strings.Repeat("k", store.MaxText),
	} {
		want := event(fmt.Sprint(i))
		want.Service, want.Instance, want.Key, want.Table, want.Place.Node = text, text, text, text, text
		for name, raw := range map[string][]byte{"columns": []byte("no JSON"), "body": nil} {
			t.Run(name, func(t *testing.T) {
				want.ID = name + want.ID
				add(t, s, want, raw, true)
				if got := recent(t, s, 1)[0].Event; !reflect.DeepEqual(got, want) {
					t.Errorf("stored %+v, want %+v", got, want)
				}
			})
		}
	}
}

func TestBounds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.db")
	s := openStore(t, path)
	long := strings.Repeat("锁", store.MaxBody)
	ev := event("1")
	ev.Service, ev.Instance, ev.Key, ev.Table, ev.Place.Node = long, long, long, long, long
	ev.Count = math.MaxInt
	add(t, s, ev, nil, true)
	ev.ID = "2"
	add(t, s, ev, []byte(long), true)

	for _, r := range recent(t, s, 2) {
		got := r.Event
		for _, text := range []string{got.Service, got.Instance, got.Key, got.Table, got.Place.Node} {
			if len(text) > store.MaxText || !strings.HasSuffix(text, "锁…") {
				t.Errorf("event %s: text of %d bytes, want at most %d", got.ID, len(text), store.MaxText)
			}
		}
		if got.Count != store.MaxCount {
			t.Errorf("event %s: count %d, want %d", got.ID, got.Count, store.MaxCount)
		}
	}
	counts, err := s.Counts(t.Context())
	if want := (store.Count{Events: 2, Failures: 2 * store.MaxCount}); err != nil || counts[notify.VerdictOverlap] != want {
		t.Errorf("Counts = %+v, %v, want %+v", counts, err, want)
	}
	var kept, size int
	err = raw(t, path).QueryRowContext(t.Context(),
		`SELECT length(body), body_size FROM events WHERE event_id = '2'`).Scan(&kept, &size)
	if err != nil || kept != store.MaxBody || size != len(long) {
		t.Errorf("kept %d of %d bytes, %v; want %d of %d", kept, size, err, store.MaxBody, len(long))
	}
}

func TestBodyIsKeptAsReceived(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.db")
	s := openStore(t, path)
	body := `{"a member": "that nobody knows"}`
	add(t, s, event("1"), []byte(body), true)
	var got string
	if err := raw(t, path).QueryRowContext(t.Context(), `SELECT body FROM events`).Scan(&got); err != nil || got != body {
		t.Errorf("body %q, %v, want %q", got, err, body)
	}
}

func TestRecentLimit(t *testing.T) {
	s := openStore(t, filepath.Join(t.TempDir(), "m.db"))
	for i := range 5 {
		add(t, s, event(fmt.Sprint(i)), nil, true)
	}
	for limit, want := range map[int]int{-1: 0, 0: 0, 3: 3, math.MaxInt: 5} {
		if got := recent(t, s, limit); len(got) != want {
			t.Errorf("Recent(%d) has %d events, want %d", limit, len(got), want)
		}
	}
}

func TestCounts(t *testing.T) {
	s := openStore(t, filepath.Join(t.TempDir(), "m.db"))
	counts, err := s.Counts(t.Context())
	if err != nil || len(counts) != 0 {
		t.Fatalf("Counts of an empty store = %v, %v", counts, err)
	}
	for i, ev := range []notify.Event{
		{Verdict: notify.VerdictOverlap, Count: 1}, {Verdict: notify.VerdictOverlap, Count: 4}, {Verdict: notify.VerdictLost, Count: 1},
	} {
		whole := event(fmt.Sprint(i))
		whole.Verdict, whole.Count = ev.Verdict, ev.Count
		add(t, s, whole, nil, true)
	}
	counts, err = s.Counts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := map[notify.Verdict]store.Count{
		notify.VerdictOverlap: {Events: 2, Failures: 5},
		notify.VerdictLost:    {Events: 1, Failures: 1},
	}
	if !reflect.DeepEqual(counts, want) {
		t.Errorf("Counts = %v, want %v", counts, want)
	}
}

var caught = time.Date(2026, 5, 4, 3, 2, 1, 123456000, time.UTC)

func event(id string) notify.Event {
	return notify.Event{
		ID: id, Service: "orders", Instance: "orders-1", Verdict: notify.VerdictOverlap, Outcome: notify.OutcomeRefused,
		Key: "order:1", CaughtAt: caught, Place: notify.Place{Node: "127.0.0.1:7000", Slot: 42}, Count: 1,
	}
}

func add(t *testing.T, s *store.Store, ev notify.Event, raw []byte, want bool) {
	t.Helper()
	got, err := s.Add(t.Context(), ev, raw, "")
	if err != nil {
		t.Fatalf("Add: %v", err)
	}
	if got != want {
		t.Fatalf("Add of %q = %v, want %v", ev.ID, got, want)
	}
}

func recent(t *testing.T, s *store.Store, limit int) []store.Received {
	t.Helper()
	got, err := s.Recent(t.Context(), limit)
	if err != nil {
		t.Fatalf("Recent: %v", err)
	}
	return got
}

// What goes on since before a time belongs to it, as long as its instance lives.
func TestDegradedEvents(t *testing.T) {
	s := temp(t)
	send := func(id, instance string, outcome notify.Outcome, at time.Duration) {
		t.Helper()
		ev := event(id)
		ev.Verdict, ev.Outcome, ev.Instance, ev.CaughtAt = notify.VerdictDegraded, outcome, instance, caught.Add(at)
		add(t, s, ev, nil, true)
	}
	send("over", "a", notify.OutcomeUnknown, -3*time.Hour)
	send("end", "a", notify.OutcomeCommitted, -2*time.Hour)
	send("long-ago", "e", notify.OutcomeUnknown, -7*time.Hour) // it may have ended in the outage
	send("goes-on", "b", notify.OutcomeUnknown, -2*time.Hour)
	send("silent", "c", notify.OutcomeUnknown, -2*time.Hour)
	send("lives", "d", notify.OutcomeUnknown, -time.Hour)
	send("now", "b", notify.OutcomeCommitted, time.Second)
	send("later", "b", notify.OutcomeUnknown, time.Hour)
	beat := func(instance string, at time.Duration) {
		t.Helper()
		h := incident.Heartbeat{Service: event("").Service, Instance: instance, Every: 10 * time.Second, ReceivedAt: caught.Add(at)}
		if err := s.AddHeartbeat(t.Context(), h); err != nil {
			t.Fatal(err)
		}
	}
	beat("c", -time.Hour)
	beat("d", 0)
	list, err := s.DegradedEvents(t.Context(), event("").Service, caught, caught.Add(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, r := range list {
		ids = append(ids, r.Event.ID)
	}
	if got, want := strings.Join(ids, ", "), "goes-on, lives, now"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

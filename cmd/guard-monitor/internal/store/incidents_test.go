package store_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/store"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/watch"
	"github.com/belaygo/belay/notify"
)

func temp(t *testing.T) *store.Store {
	t.Helper()
	return openStore(t, filepath.Join(t.TempDir(), "m.db"))
}

func anIncident(id string) incident.Incident {
	return incident.Incident{
		ID: id, Key: incident.GroupKey("orders", incident.Failover, "main", "0-5460"), Service: "orders",
		Cause: incident.Failover, Cluster: "main", Shard: "0-5460", Place: notify.Place{Node: "127.0.0.1:7000", Slot: 42},
		State: incident.New, Confidence: incident.High, FirstAt: caught, LastAt: caught, SeenAt: caught, UpdatedAt: caught,
		OpenedAt: caught, Evidence: []incident.Evidence{
			{At: caught, Node: "i", Kind: incident.Reported, Report: &incident.Report{Key: "k", Granted: caught, TTL: time.Second}},
			{At: caught, Node: "n", Kind: incident.Seen, Entry: &watch.Entry{Kind: watch.Failover, At: caught, Numbers: map[string]int64{"new_epoch": 7}}, For: time.Second},
			{At: caught, Kind: incident.Healthy, From: caught, To: caught, Redis: "n", Service: "s"},
		},
		DocLink: incident.DocLink(incident.Failover), Rate: incident.Rate{Start: caught, Now: 3, Peak: 9},
	}
}

func apply(t *testing.T, s *store.Store, saved []incident.Incident, moves ...incident.Move) {
	t.Helper()
	if err := s.Apply(t.Context(), saved, moves); err != nil {
		t.Fatal(err)
	}
}

func get(t *testing.T, s *store.Store, id string) incident.Incident {
	t.Helper()
	i, err := s.Incident(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func TestIncidentRoundTrip(t *testing.T) {
	s := temp(t)
	want := anIncident("a")
	apply(t, s, []incident.Incident{want})
	if got := get(t, s, "a"); !reflect.DeepEqual(got, want) {
		t.Errorf("stored %+v\nwant   %+v", got, want)
	}
	want.State, want.Cause, want.MergedInto, want.ResolvedAt = incident.Resolved, incident.Partition, "b", caught.Add(time.Hour)
	apply(t, s, []incident.Incident{want})
	if got := get(t, s, "a"); !reflect.DeepEqual(got, want) {
		t.Errorf("stored %+v\nwant   %+v", got, want)
	}
	if _, err := s.Incident(t.Context(), "missing"); !errors.Is(err, incident.ErrNotFound) {
		t.Errorf("missing incident: %v", err)
	}
}

func TestMoves(t *testing.T) {
	s := temp(t)
	for n := range 4 {
		ev := event(fmt.Sprint(n))
		ev.Key, ev.Count = fmt.Sprint("order:", n%2), 10
		ev.CaughtAt = caught.Add(time.Duration(n) * time.Second)
		if n == 3 {
			ev.Verdict, ev.Outcome = notify.VerdictUnknownCommit, notify.OutcomeUnknown
		}
		add(t, s, ev, nil, true)
	}
	events, err := s.Ungrouped(t.Context(), 10)
	if err != nil || len(events) != 4 || events[0].Event.ID != "0" {
		t.Fatalf("Ungrouped = %v, %v, want four, the oldest first", events, err)
	}
	var all []incident.Move
	for _, e := range events {
		all = append(all, incident.Move{Seq: e.Seq, Incident: "a"})
	}
	b := anIncident("b")
	b.Key = "other"
	apply(t, s, []incident.Incident{anIncident("a"), b}, all...)
	apply(t, s, nil, all...) // again
	check := func(id string, events, failures, keys, unknowns int64) {
		t.Helper()
		i := get(t, s, id)
		if i.Events != events || i.Effect.Failures != failures || i.Keys != keys || i.Effect.Unknown != unknowns {
			t.Errorf("%s: events %d, failures %d, keys %d, unknowns %d, want %d, %d, %d, %d",
				id, i.Events, i.Effect.Failures, i.Keys, i.Effect.Unknown, events, failures, keys, unknowns)
		}
	}
	check("a", 4, 40, 2, 10)
	if i := get(t, s, "a"); !i.FirstAt.Equal(caught) || !i.LastAt.Equal(caught.Add(3*time.Second)) {
		t.Errorf("from %v to %v", i.FirstAt, i.LastAt)
	}
	if left, err := s.Ungrouped(t.Context(), 10); err != nil || len(left) != 0 {
		t.Errorf("Ungrouped = %v, %v, want none", left, err)
	}

	move := func(n int) { apply(t, s, nil, incident.Move{Seq: events[n].Seq, Incident: "b"}) }
	move(3)
	check("a", 3, 30, 2, 0)
	check("b", 1, 10, 1, 10)
	move(1)
	check("a", 2, 20, 1, 0)
	check("b", 2, 20, 1, 10)
	apply(t, s, nil, incident.Move{Seq: 999, Incident: "b"}) // purged
	check("b", 2, 20, 1, 10)

	got, err := s.Events(t.Context(), store.EventFilter{Incident: "b", Causes: []incident.Cause{incident.Failover}})
	if err != nil || len(got) != 2 || got[0].Incident != "b" {
		t.Errorf("events of b: %+v, %v", got, err)
	}
	if err := s.Apply(t.Context(), []incident.Incident{anIncident("c"), {ID: "d", Rate: incident.Rate{Start: time.Unix(1<<60, 0)}}}, nil); err == nil {
		t.Error("an incident that cannot be encoded was stored")
	}
	if _, err := s.Incident(t.Context(), "c"); !errors.Is(err, incident.ErrNotFound) {
		t.Errorf("half of a failed Apply is there: %v", err)
	}
}

func TestIncidentFilter(t *testing.T) {
	s := temp(t)
	a, b, c := anIncident("a"), anIncident("b"), anIncident("c")
	b.State, b.Service, b.Cause = incident.Resolved, "stock", incident.Bypass
	c.LastAt = caught.Add(time.Hour)
	apply(t, s, []incident.Incident{a, b, c})
	for want, f := range map[string]store.IncidentFilter{
		"c b a": {},
		"c a":   {Open: true},
		"b":     {Causes: []incident.Cause{incident.Bypass, incident.Overrun}},
		"b a":   {Before: "c"},
		"c":     {From: caught.Add(time.Minute)},
		"":      {To: caught},
		"c ":    {Limit: 1},
	} {
		list, err := s.Incidents(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		for _, i := range list {
			ids = append(ids, i.ID)
		}
		if got := strings.Join(ids, " "); got != strings.TrimSpace(want) {
			t.Errorf("%+v: %q, want %q", f, got, want)
		}
		if n, more, err := s.CountIncidents(t.Context(), f); f.Before == "" && f.Limit == 0 && (n != len(list) || more || err != nil) {
			t.Errorf("%+v: count %d, %v, %v, want %d", f, n, more, err, len(list))
		}
	}
	if i, err := s.LastIncident(t.Context(), a.Key); err != nil || i.ID != "c" {
		t.Errorf("LastIncident = %v, %v, want c", i.ID, err)
	}
}

func TestAcknowledge(t *testing.T) {
	s := temp(t)
	i := anIncident("a")
	apply(t, s, []incident.Incident{i})
	at := caught.Add(time.Minute)
	if err := s.Acknowledge(t.Context(), "a", "ann", at); err != nil {
		t.Fatal(err)
	}
	apply(t, s, []incident.Incident{i}) // the tracker knows nothing of it
	if got := get(t, s, "a"); got.AckedBy != "ann" || !got.AckedAt.Equal(at) {
		t.Errorf("acked by %q at %v", got.AckedBy, got.AckedAt)
	}
	i.State = incident.Resolved
	apply(t, s, []incident.Incident{i})
	if got := get(t, s, "a"); got.AckedBy != "" || !got.AckedAt.IsZero() {
		t.Errorf("still acked by %q after its end", got.AckedBy)
	}
	if err := s.Acknowledge(t.Context(), "a", "ann", at); !errors.Is(err, incident.ErrNotFound) {
		t.Errorf("acknowledge what is over: %v", err)
	}
	if err := s.Acknowledge(t.Context(), "a", "", at); err == nil {
		t.Error("nobody acknowledged")
	}
}

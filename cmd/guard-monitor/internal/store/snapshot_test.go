package store_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/store"
	"github.com/belaygo/belay/notify"
)

func current(t *testing.T, s *store.Store) store.Snapshot {
	t.Helper()
	now, err := s.Current(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return now
}

// All open incidents are found, however many there are, and the newest first.
func TestOpenIncidentsAreAll(t *testing.T) {
	t.Parallel()
	s := temp(t)
	var all []incident.Incident
	for n := range store.MaxRows + 1 {
		all = append(all, anIncident(fmt.Sprintf("%04d", n)))
	}
	apply(t, s, all)
	open, err := s.OpenIncidents(t.Context())
	if err != nil || len(open) != len(all) || open[len(open)-1].ID != "0000" {
		t.Fatalf("%d open incidents, %v; want %d", len(open), err, len(all))
	}
	if now := current(t, s); len(now.Incidents) != len(all) {
		t.Errorf("the snapshot has %d incidents", len(now.Incidents))
	}
}

// A snapshot is another one after each kind of change, and only then.
func TestSnapshotFollowsChanges(t *testing.T) {
	t.Parallel()
	s := temp(t)
	version := current(t, s).Version
	changed := func(what string) map[string]*incident.Incident {
		t.Helper()
		now := current(t, s)
		if now.Version == version {
			t.Errorf("the snapshot is the same after %s", what)
		}
		version = now.Version
		byID := make(map[string]*incident.Incident)
		for _, i := range now.Incidents {
			byID[i.ID] = i
		}
		return byID
	}
	ev := event("1")
	ev.Outcome = notify.OutcomeUnknown
	add(t, s, ev, nil, true)
	apply(t, s, []incident.Incident{anIncident("a"), anIncident("b")}, incident.Move{Seq: 1, Incident: "a"})
	first := changed("new incidents")
	if a := first["a"]; len(first) != 2 || a.Events != 1 || fmt.Sprint(a.Effect.Doubtful) != "["+ev.Key+"]" || len(first["b"].Effect.Doubtful) != 0 {
		t.Errorf("incidents %+v", first)
	}
	apply(t, s, nil, incident.Move{Seq: 1, Incident: "b"}) // which saves no incident
	moved := changed("a move")
	if moved["a"].Events != 0 || moved["b"].Events != 1 || first["a"].Events != 1 {
		t.Errorf("an event has moved: %+v, %+v; before %+v", moved["a"], moved["b"], first["a"])
	}
	noError(t, s.Acknowledge(t.Context(), "a", "ann", time.Now()))
	if list := changed("an acknowledgement"); list["a"].AckedBy != "ann" || moved["a"].AckedBy != "" {
		t.Errorf("acknowledged %+v; before %+v", list["a"], moved["a"])
	}
	id, err := s.AddSilence(t.Context(), incident.Silence{
		Matchers: []incident.Matcher{{Field: incident.ByIncident, Value: "b"}}, Start: time.Now(), End: time.Now().Add(time.Hour), Author: "ann", Comment: "drill",
	})
	noError(t, err)
	if list := changed("a silence"); !list["b"].Silenced() || list["a"].Silenced() || moved["b"].Silenced() {
		t.Errorf("silenced: a %v, b %v, b before %v", list["a"].Silences, list["b"].Silences, moved["b"].Silences)
	}
	noError(t, s.EndSilence(t.Context(), id, "ann", time.Now()))
	if list := changed("the end of a silence"); list["b"].Silenced() {
		t.Error("the silence holds after its end")
	}
	over := anIncident("a")
	over.State, over.ResolvedAt = incident.Resolved, time.Now()
	apply(t, s, []incident.Incident{over})
	if list := changed("an end"); list["a"].State != incident.Resolved {
		t.Errorf("resolved %+v", list["a"])
	}
	for range 3 {
		if now := current(t, s); now.Version != version {
			t.Error("the snapshot is another one, and nothing has changed")
		}
	}
}

// What ended long ago is in no snapshot, though its operations are settled only now: to a
// receiver that was sent nothing of it, it would be news.
func TestSnapshotIsRecent(t *testing.T) {
	t.Parallel()
	s := temp(t)
	for id, age := range map[string]time.Duration{"lately": store.Recent - time.Hour, "long-ago": store.Recent + time.Hour} {
		over := anIncident(id)
		over.State, over.ResolvedAt = incident.Resolved, time.Now().Add(-age)
		ev := event(id)
		ev.Outcome = notify.OutcomeUnknown
		add(t, s, ev, nil, true)
		apply(t, s, []incident.Incident{over}, incident.Move{Seq: recent(t, s, 1)[0].Seq, Incident: id})
		noError(t, s.Settle(t.Context(), id, incident.Settlement{At: time.Now(), Operations: int64(ev.Count), Outcome: notify.OutcomeCommitted, By: "ann"}))
	}
	if now := current(t, s); len(now.Incidents) != 1 || now.Incidents[0].ID != "lately" {
		t.Errorf("incidents %v", now.Incidents)
	}
	late := anIncident("late")
	apply(t, s, []incident.Incident{late})
	if now := current(t, s); len(now.Incidents) != 2 {
		t.Errorf("incidents %v", now.Incidents)
	}
	late.State, late.ResolvedAt = incident.Resolved, time.Now().Add(-2*store.Recent) // it is found out now
	apply(t, s, []incident.Incident{late})
	if now := current(t, s); len(now.Incidents) != 1 {
		t.Errorf("incidents %v", now.Incidents)
	}
}

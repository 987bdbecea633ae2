package store_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
	"github.com/belaygo/belay/notify"
)

// Operations in doubt are settled key by key, or all at once, and stay settled when their
// events come into another incident.
func TestSettle(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.db")
	s := openStore(t, path)
	for n, key := range []string{"a", "a", "b", "c", "d"} {
		ev := event(fmt.Sprint(n))
		ev.Key, ev.Verdict, ev.Outcome, ev.Count = key, notify.VerdictUnknownCommit, notify.OutcomeUnknown, 2
		if n > 2 {
			ev.Verdict = notify.VerdictLost
		}
		add(t, s, ev, nil, true)
	}
	list := recent(t, s, 10)
	moves := func(to string) (all []incident.Move) {
		for _, r := range list {
			all = append(all, incident.Move{Seq: r.Seq, Incident: to})
		}
		return all
	}
	save := func(id string) {
		t.Helper()
		if err := s.Apply(t.Context(), []incident.Incident{{ID: id, State: incident.New, FirstAt: caught, LastAt: caught}}, moves(id)); err != nil {
			t.Fatal(err)
		}
	}
	want := func(id string, e incident.Effect) {
		t.Helper()
		if got := get(t, s, id).Effect; fmt.Sprint(got) != fmt.Sprint(e) {
			t.Errorf("effect %+v, want %+v", got, e)
		}
	}
	save("1")
	want("1", incident.Effect{Failures: 10, Unknown: 10, Doubtful: []string{"a", "b", "c", "d"}})

	settle := func(key string, o notify.Outcome) error {
		return s.Settle(t.Context(), "1", incident.Settlement{At: caught, Key: key, Operations: 1, Outcome: o, By: "alice", Note: "looked at " + key})
	}
	for _, err := range []error{settle("a", notify.OutcomeRolledBack), settle("c", notify.OutcomeCommitted)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	want("1", incident.Effect{Failures: 10, Undone: 4, Committed: 2, Unknown: 4, Doubtful: []string{"b", "d"}})
	if err := settle("a", notify.OutcomeCommitted); !errors.Is(err, incident.ErrNotFound) {
		t.Errorf("settled again: %v", err)
	}
	if err := settle("b", notify.OutcomeUnknown); !errors.Is(err, incident.ErrInvalidSettlement) {
		t.Errorf("settled as unknown: %v", err)
	}
	for _, shown := range []int64{1, 3, 5} {
		x := incident.Settlement{At: caught, Outcome: notify.OutcomeCommitted, By: "alice", Operations: shown}
		if err := s.Settle(t.Context(), "1", x); !errors.Is(err, incident.ErrChanged) {
			t.Errorf("4 are in doubt, %d were shown: %v", shown, err)
		}
	}
	if err := s.Settle(t.Context(), "1", incident.Settlement{At: caught, Outcome: notify.OutcomeCommitted, By: "alice"}); !errors.Is(err, incident.ErrInvalidSettlement) {
		t.Errorf("neither a key nor a number was shown: %v", err)
	}
	want("1", incident.Effect{Failures: 10, Undone: 4, Committed: 2, Unknown: 4, Doubtful: []string{"b", "d"}})
	save("2")
	want("2", incident.Effect{Failures: 10, Undone: 4, Committed: 2, Unknown: 4, Doubtful: []string{"b", "d"}})
	save("1")
	exec(t, path, `DELETE FROM events WHERE key = 'd'`)
	if err := settle("b", notify.OutcomeCommitted); err != nil { // that of a COMMIT without an answer needs no lost lock
		t.Fatal(err)
	}
	want("1", incident.Effect{Failures: 10, Undone: 4, Committed: 2})
	if err := settle("", notify.OutcomeCommitted); !errors.Is(err, incident.ErrNotFound) {
		t.Errorf("nothing is in doubt: %v", err)
	}
	done, err := s.Settlements(t.Context(), "1", 2)
	if err != nil || len(done) != 2 || done[0] != (incident.Settlement{At: caught, Key: "b", Outcome: notify.OutcomeCommitted, Operations: 2, By: "alice", Note: "looked at b"}) {
		t.Errorf("settlements %+v, %v", done, err)
	}
	for id, want := range map[string]notify.Outcome{"0": notify.OutcomeRolledBack, "2": notify.OutcomeCommitted} {
		if r, _, err := s.Event(t.Context(), id); err != nil || r.Event.Outcome != want {
			t.Errorf("outcome of event %s is %s, %v, want %s", id, r.Event.Outcome, err, want)
		}
	}
	writers, err := s.Writers(t.Context(), "a", caught.Add(-1), caught.Add(1))
	if err != nil || len(writers) > 0 {
		t.Errorf("what did not take effect has written: %v, %v", writers, err)
	}
}

package model

import (
	"slices"
	"strings"
	"testing"
)

// TestLabels: what a label or a hidden action says is an action, and each sight has a label.
func TestLabels(t *testing.T) {
	known := func(says string) bool {
		return slices.ContainsFunc(actions, func(a action) bool { return a.says == says })
	}
	for sight, l := range labels {
		for _, says := range l.actions {
			if !known(says) {
				t.Errorf("%s: no action %q", sight, says)
			}
		}
		if len(l.actions) == 0 && l.idle == nil {
			t.Errorf("%s: nothing is what was seen", sight)
		}
	}
	for says := range unseen {
		if !known(says) {
			t.Errorf("no action %q", says)
		}
	}
	if len(actions) > 64*len(taken{}) {
		t.Errorf("%d actions, and taken has fewer bits", len(actions))
	}
}

// TestTrace follows an insert, and refuses steps that the model cannot take.
func TestTrace(t *testing.T) {
	insert := []Seen{
		{What: Queues}, {What: Granted}, {What: Begins}, {What: SendsWrite}, {What: Writes}, {What: SendsCommit},
		{What: Commits}, {What: Rests, Holder: 0, Version: 1}, {What: CommitAnswered},
	}
	end := []Seen{{What: SendsRelease}, {What: Released}, {What: Returns, Says: "nil"}, {What: Rests, Holder: -1, Version: 1}}
	if err := see(slices.Concat(insert, end)); err != nil {
		t.Error(err)
	}
	for _, wrong := range []Seen{
		{What: Returns, Says: "nil"}, // its release was not awaited
		{What: Granted, Who: 1},
		{What: Publishes, Says: "lost"},
		{What: Rests, Holder: 0, Version: 0},
	} {
		err := see(append(slices.Clone(insert), wrong))
		if err == nil || !strings.Contains(err.Error(), "a.0 gives the lock back") {
			t.Errorf("%s: got %v, want an error with what could happen instead", wrong, err)
		}
	}
}

func see(steps []Seen) error {
	trace := NewTrace(&Config{Name: "mysql insert", Callers: two})
	for _, x := range steps {
		if err := trace.See(x); err != nil {
			return err
		}
	}
	return nil
}

package model

import (
	"slices"
	"strings"
	"testing"
)

// TestLabels: what a label or a hidden action says is an action, and each sight has a label.
func TestLabels(t *testing.T) {
	for _, r := range []rules{oneKey, severalKeys} {
		known := func(says string) bool {
			return slices.ContainsFunc(r.actions, func(a action) bool { return a.says == says })
		}
		for sight, l := range r.labels {
			for _, says := range slices.Concat(l.names(0), l.names(1)) {
				if !known(says) {
					t.Errorf("%s: no action %q", sight, says)
				}
			}
			if len(l.names(0)) == 0 && l.idle == nil {
				t.Errorf("%s: nothing is what was seen", sight)
			}
		}
		for says := range r.unseen {
			if !known(says) {
				t.Errorf("no action %q", says)
			}
		}
		if len(r.actions) > 64*len(taken{}) {
			t.Errorf("%d actions, and taken has fewer bits", len(r.actions))
		}
	}
}

// TestTrace follows an insert, and refuses steps that the model cannot take.
func TestTrace(t *testing.T) {
	insert := []Seen{
		{What: Queues}, {What: Granted}, {What: Begins}, {What: SendsWrite}, {What: Writes}, {What: SendsCommit},
		{What: Commits}, {What: Rests, Holder: 0, Version: 1}, {What: CommitAnswered},
	}
	end := []Seen{{What: SendsRelease}, {What: Released}, {What: Returns, Says: "nil"}, {What: Rests, Holder: -1, Version: 1}}
	cfg := &Config{Name: "mysql insert", Callers: two}
	if err := see(cfg, slices.Concat(insert, end)); err != nil {
		t.Error(err)
	}
	for _, wrong := range []Seen{
		{What: Returns, Says: "nil"}, // its release was not awaited
		{What: Granted, Who: 1},
		{What: Publishes, Says: "lost"},
		{What: Rests, Holder: 0, Version: 0},
	} {
		err := see(cfg, append(slices.Clone(insert), wrong))
		if err == nil || !strings.Contains(err.Error(), "a.0 gives the lock back") {
			t.Errorf("%s: got %v, want an error with what could happen instead", wrong, err)
		}
	}
}

// TestTraceOfAnOutage follows callers of one process, the first of whom begins an outage. Nobody goes on
// without the lock unless that was reported.
func TestTraceOfAnOutage(t *testing.T) {
	asked := []Seen{{What: Queues}, {What: NodeRefuses}, {What: Unserved}, {What: Queues}}
	begun := slices.Concat(asked, []Seen{{What: OutageBegins}, {What: Begins}})
	ended := slices.Concat(begun, []Seen{{What: NodeBack}, {What: OutageEnds}, {What: OutageReported, Count: 1}})
	cfg := &Config{Name: "DBOnly insert", Callers: three, DBOnly: true}
	if err := see(cfg, ended); err != nil {
		t.Error(err)
	}
	over := slices.Concat(begun, []Seen{
		{What: SendsWrite}, {What: Writes}, {What: SendsCommit}, {What: Commits}, {What: CommitAnswered}, {What: Returns, Says: "nil"},
	})
	behind := func(steps []Seen, more ...Seen) []Seen { return slices.Concat(steps, more) }
	if err := see(cfg, behind(over, Seen{What: Queues, Who: 2}, Seen{What: Begins, Who: 2})); err != nil {
		t.Errorf("the next caller goes on without a report of its own: %v", err)
	}
	for _, wrong := range [][]Seen{
		behind(asked, Seen{What: Begins}),
		behind(asked[:2], Seen{What: OutageBegins}),
		behind(over, Seen{What: Queues, Who: 2}, Seen{What: OutageBegins, Who: 2}),
		behind(over, Seen{What: Queues, Who: 2}, Seen{What: Unserved, Who: 2}),
		behind(begun, Seen{What: OutageEnds}),
		behind(begun, Seen{What: OutageReported, Count: 1}),
		behind(ended, Seen{What: OutageReported, Count: 2}),
		behind(over, Seen{What: NodeBack}, Seen{What: OutageEnds}, Seen{What: Queues, Who: 2}, Seen{What: Begins, Who: 2}),
	} {
		if see(cfg, wrong) == nil {
			t.Errorf("the model takes %v", wrong)
		}
	}
}

// TestTraceOfTwoKeys follows a caller who loses the lock on its second key, and meets a caller of that one.
func TestTraceOfTwoKeys(t *testing.T) {
	begun := []Seen{
		{What: Queues}, {What: Granted}, {What: Granted, Key: 1}, {What: Begins}, {What: Reads}, {What: SendsWrite}, {What: Writes},
		{What: LockLost, Key: 1}, {What: Rests, Holder: 0, Version: 1}, {What: Rests, Key: 1, Holder: -1, Version: 1},
	}
	other := []Seen{
		{What: Queues, Who: 1}, {What: Granted, Who: 1, Key: 1}, {What: Begins, Who: 1}, {What: SendsWrite, Who: 1, Key: 1}, {What: Writes, Who: 1, Key: 1},
		{What: SendsCommit, Who: 1}, {What: Commits, Who: 1}, {What: Rests, Key: 1, Holder: 1, Version: 2},
	}
	refused := slices.Concat(begun, other, []Seen{
		{What: SendsWrite, Key: 1}, {What: WriteRefused, Key: 1}, {What: Inspected, Key: 1, Says: "another has"},
		{What: SendsRelease}, {What: SendsRelease, Key: 1}, {What: Released}, {What: ReleasedGone, Key: 1},
	})
	cfg := &Config{Name: "transfer, and a caller of its second key", Callers: two, Keys: [processes]uint8{3, 2}, Row: 1}
	if err := see(cfg, slices.Concat(refused, []Seen{{What: Publishes, Says: "overlap", Key: 1, Count: 1}, {What: Returns, Says: "ErrIntercepted"}})); err != nil {
		t.Error(err)
	}
	for _, wrong := range [][]Seen{
		{begun[0], begun[2]},
		append(slices.Clone(begun[:3]), Seen{What: Granted, Who: 1, Key: 1}),
		append(slices.Clone(begun), Seen{What: SendsWrite}),
		append(slices.Concat(begun, other), Seen{What: SendsWrite, Key: 1}, Seen{What: Writes, Key: 1}),
		append(slices.Clone(refused), Seen{What: Publishes, Says: "overlap", Count: 1}),
		append(slices.Clone(refused), Seen{What: Publishes, Says: "lost", Key: 1, Count: 1}),
		append(slices.Clone(refused), Seen{What: Returns, Says: "ErrIntercepted"}),
	} {
		if see(cfg, wrong) == nil {
			t.Errorf("the model takes %v", wrong)
		}
	}
}

func see(cfg *Config, steps []Seen) error {
	trace := NewTrace(cfg)
	for _, x := range steps {
		if err := trace.See(x); err != nil {
			return err
		}
	}
	return nil
}

package call

import (
	"slices"
	"strings"
	"testing"
)

// TestLabels: what a sight or an answer stands for is an action, and every action by which a process returns
// has an answer.
func TestLabels(t *testing.T) {
	if n := len(actions); n > 64 {
		t.Fatalf("%d actions, and states have room for 64", n)
	}
	known := make(map[string]bool)
	for _, a := range actions {
		known[a.says], known[inVain(a.says)] = true, true
	}
	for sight, all := range tied {
		for _, says := range all {
			if !known[says] {
				t.Errorf("%s: no action %q", sight, says)
			}
		}
	}
	for says := range answers {
		if !known[says] {
			t.Errorf("no action %q", says)
		}
	}
	for says := range returning() {
		if answers[says] == nil {
			t.Errorf("no answer to a process that returns by %q", says)
		}
	}
	if len(actions) > 64 {
		t.Errorf("%d actions, and states have fewer bits", len(actions))
	}
}

// returning are the actions by which processes return in the states that a search goes through.
func returning() map[string]bool {
	all := make(map[string]bool)
	cfg := &Config{Repeats: 2, Faults: 2, Other: true}
	next, known := []State{start(cfg)}, make(map[State]bool)
	for len(next) > 0 {
		s := next[0]
		next = next[1:]
		steps(cfg, s, func(step Step, after State) {
			if i := step.process; after.Processes[i].PC == returned && s.Processes[i].PC != returned {
				all[actions[step.action].says] = true
			}
			if !known[after] {
				known[after], next = true, append(next, after)
			}
		})
	}
	return all
}

// A moment is what a Trace is given at once.
type moment struct {
	shown Shown
	steps []Seen
}

func a(what Sight, says ...Answer) (x Seen) {
	x.What = what
	for _, x.Says = range says {
	}
	return x
}

// TestTrace follows a request, and refuses what the model cannot do.
func TestTrace(t *testing.T) {
	open := Shown{Pending: true, Attempt: 1, Lease: true, Print: 1, Reserved: 1}
	calls, over, done := open, open, Shown{Claim: true, Reserved: 1, Settled: 1 << accepted, Remembers: accepted}
	calls.Calls[0] = true
	over.Lease = false
	begun := []moment{{steps: []Seen{a(Begins)}}, {steps: []Seen{a(Granted)}}, {shown: open}, {shown: calls}}
	answered := Shown{Pending: true, Attempt: 1, Lease: true, Print: 1, Reserved: 1, Remembers: accepted}
	if err := seeAll(append(begun, moment{shown: answered}, moment{shown: done}, moment{done, []Seen{a(LockGone), a(Returns, Done)}})); err != nil {
		t.Error(err)
	}
	fails := []moment{{open, []Seen{a(CallFails)}}, {open, []Seen{a(Returns, Pending)}}}
	if err := seeAll(slices.Concat(begun, []moment{{calls, []Seen{a(Hit)}}}, fails)); err != nil {
		t.Error(err)
	}
	for name, wrong := range map[string][]moment{
		"it keeps its lease":             fails,
		"it settles while it calls":      {{shown: Shown{Claim: true, Reserved: 1, Settled: 1 << accepted, Calls: [2]bool{true}}}},
		"the call ends with the lock":    {{open, []Seen{a(LockGone)}}, {open, []Seen{a(Returns, Pending)}}},
		"the reservation vanishes":       {{}},
		"it is done while it is open":    {{open, []Seen{a(Returns, Done)}}},
		"another calls beside it":        {{Shown{Pending: true, Attempt: 2, Lease: true, Print: 1, Reserved: 1, Calls: [2]bool{true, true}}, nil}},
		"it calls again under one lock":  {{over, []Seen{a(LeaseOver)}}, {shown: calls}},
		"the lease ends before its time": {{shown: over}},
	} {
		if err := seeAll(append(slices.Clip(begun), wrong...)); err == nil || !strings.Contains(err.Error(), "instead") {
			t.Errorf("%s: got %v, want an error with what could happen instead", name, err)
		}
	}
}

func seeAll(moments []moment) error {
	trace := NewTrace(&Config{})
	for _, m := range moments {
		if err := trace.See(m.shown, m.steps...); err != nil {
			return err
		}
	}
	return nil
}

package model

import (
	"fmt"
	"strings"
)

// Case returns the story as a case of chaos.TestOracle: what the workers wrote down,
// and what was done to them. That oracle does not look at the way of the events, and its
// cases here have one key.
func (v *Story) Case() string {
	if v.Config.Path || v.Config.several() {
		return ""
	}
	var t transcript
	v.replay(func(n int, step Step, before, after *State) {
		t.at = 10 * n
		for i := range callers {
			if v.Config.Callers[i] != nobody {
				t.caller(i, &before.Callers[i], &after.Callers[i])
			}
		}
		t.fault(before, after)
	})
	var b strings.Builder
	fmt.Fprintf(&b, "{\n\tname: %q,\n\tlines: map[string][]line{\n", strings.TrimSpace(v.Invariant+" "+v.Blind)+" in "+v.Config.Name)
	for _, p := range []string{"a", "b"} {
		if lines := t.lines[p]; len(lines) > 0 {
			fmt.Fprintf(&b, "\t\t%q: {\n\t\t\t%s,\n\t\t},\n", p, strings.Join(lines, ",\n\t\t\t"))
		}
	}
	b.WriteString("\t},\n")
	if len(t.faults) > 0 {
		fmt.Fprintf(&b, "\tfaults: []fault{%s},\n", strings.Join(t.faults, ", "))
	}
	switch {
	case v.Pair && v.Blind != "":
		b.WriteString("\toverlaps: 1, blind: 1,\n")
	case v.Pair:
		b.WriteString("\toverlaps: 1,\n")
	case v.Invariant == "I6":
		b.WriteString("\tfalseAlarms: 1,\n")
	}
	b.WriteString("},\n")
	return b.String()
}

// A transcript is what the workers of internal/chaos would have written down.
type transcript struct {
	at     int
	lines  map[string][]string
	faults []string
}

func (t *transcript) line(i int, at, more string) {
	if t.lines == nil {
		t.lines = make(map[string][]string)
	}
	p := processNames[i]
	t.lines[p] = append(t.lines[p], fmt.Sprintf("{T: %d, At: %s, Do: %q, Key: \"k\"%s}", t.at, at, names[i], more))
}

// caller writes the lines of what a step did for one caller.
func (t *transcript) caller(i int, was, is *Caller) {
	if was.PC == is.PC || is.PC == dead {
		return
	}
	who := fmt.Sprintf(", Owner: %q", owners[i])
	if is.Grant != 0 {
		who = fmt.Sprintf(", Owner: %q", owners[is.Grant-1])
	}
	if was.PC == idle {
		t.line(i, "called", "")
	}
	if is.PC == asking {
		t.line(i, "asked", who)
	}
	if was.PC == asking && is.PC == granted && is.Grant == owner(i) {
		t.line(i, "granted", who+`, Node: "n"`)
	}
	if was.PC == granted && is.Tx == active {
		t.line(i, "begun", "")
	}
	if version := max(is.Snap, 1) - 1; is.PC == loaded && version > 0 && is.Base > 0 {
		t.lines[processNames[i]] = append(t.lines[processNames[i]], fmt.Sprintf("{T: %d, At: loaded, Do: %q, Version: %d}", t.at, names[i], version))
	}
	if was.PC == writing && is.Reached {
		t.line(i, "wrote", "")
	}
	switch {
	case is.Unanswered && !was.Unanswered:
		t.line(i, "ended", ", Result: unanswered")
	case was.PC == committing, was.Tx == active && is.Tx == noTx:
		t.line(i, "ended", "")
	}
	t.questions(i, was, is, who)
	if is.Events > was.Events && is.Said != noVerdict {
		t.line(i, "event", fmt.Sprintf(", Event: &notify.Event{Verdict: notify.Verdict%s, Owner: %q}", verdictConsts[is.Said], owners[max(is.Grant, 1)-1]))
	}
	if is.PC == returning {
		t.line(i, "returned", ", Result: "+resultConsts[is.Res])
	}
}

// questions writes the lines of what a caller asked the engine.
func (t *transcript) questions(i int, was, is *Caller, who string) {
	switch was.PC {
	case conflicted, doubting, giving:
		switch {
		case is.AskUnheard:
			who = ", Result: unanswered"
		case is.Found.Holder == none:
			who = ""
		case is.Found.Holder == other || is.Pending == saysLost:
			who = `, Owner: "another"`
		}
		t.line(i, "inspected", who)
	case closing, freeing:
		if is.Handed {
			return
		}
		if was.PC == closing {
			t.line(i, "release", who)
		}
		if is.PC == freeing {
			return
		}
		result := `"freed"`
		switch {
		case is.FreeUnheard:
			result = "unanswered"
		case is.Pending == saysLost && is.Found.Verdict != saysLost:
			result = `"gone"`
		}
		t.line(i, "released", who+", Result: "+result)
	}
}

func (t *transcript) fault(before, after *State) {
	note := func(kind, subject string) {
		t.faults = append(t.faults, fmt.Sprintf("{%s, %q, %d, %d}", kind, subject, t.at, t.at))
	}
	switch is, was := after.Left, before.Left; {
	case is.Crash < was.Crash:
		note("databaseKilled", "")
	case is.Lose < was.Lose:
		note("wipe", "k")
	case is.Cut < was.Cut:
		note("cut", "7")
	case is.Mute < was.Mute, is.Outage < was.Outage:
		note("failover", "n")
	case is.Kill < was.Kill:
		for i := range after.Procs {
			if after.Procs[i].Dead && !before.Procs[i].Dead {
				note("kill", processNames[i])
			}
		}
	}
	for i := range after.Grants {
		if after.Grants[i].Past && !before.Grants[i].Past && after.Grants[i].State == held {
			note("pause", processNames[i])
		}
	}
}

var (
	resultConsts = [...]string{
		done: "done", failed: `failed + "invalid connection"`, lostLease: `"lost"`, duplicate: "duplicate", stale: "stale",
		intercepted: `"intercepted"`, business: `"conflict"`, unsure: "unknown", unavailable: "unavailable", busy: `"busy"`,
		replayed: `"replayed"`, claimed: `"busy"`, exists: `"exists"`, raced: `"busy"`, hurried: `"busy"`, engaged: `"busy"`,
	}
	verdictConsts = [...]string{saysOverlap: "Overlap", saysLost: "Lost", saysUnknown: "UnknownCommit"}
)

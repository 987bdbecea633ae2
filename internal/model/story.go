package model

import (
	"fmt"
	"slices"
	"strings"
)

// names are the callers': process, and number of the call there, as in internal/chaos.
var (
	names        = [callers]string{"a.0", "b.0", "a.1"}
	processNames = [callers]string{"a", "b", "a"}
	owners       = [callers]string{"A", "B", "C"}
)

// String tells the shortest story that breaks the invariant, one step a line.
func (v *Story) String() string {
	var b strings.Builder
	excuse := ""
	if v.Blind != "" {
		excuse = ", in the blind spot " + v.Blind
	}
	fmt.Fprintf(&b, "%s is broken in %q after %d steps%s", v.Invariant, v.Config.Name, len(v.Steps), excuse)
	if i := slices.IndexFunc(invariants, func(i invariant) bool { return i.ID == v.Invariant }); i >= 0 {
		fmt.Fprintf(&b, ": %s", invariants[i].Says)
	}
	b.WriteByte('\n')
	if !v.Config.Path {
		b.WriteString("     (a.0 is the first call of process a, a.1 the second)\n")
	}
	v.replay(func(n int, step Step, before, after *State) {
		fmt.Fprintf(&b, "%3d  %s\n", n, tell(v.Config, step, before, after))
	})
	return b.String()
}

// replay goes through the steps again. In after, who is about to return has not returned.
func (v *Story) replay(each func(n int, step Step, before, after *State)) {
	s := start(v.Config)
	for n, step := range v.Steps {
		before := s
		if a := actionsOf(v.Config)[step.action]; !a.do(v.Config, &s, int(step.who)) {
			panic("model: a story that can't happen: " + a.says)
		}
		s.deliver(v.Config)
		each(n+1, step, &before, &s)
		s.settle()
	}
}

// tell says what a step does, and what came of it.
func tell(cfg *Config, step Step, before, after *State) string {
	a := actionsOf(cfg)[step.action]
	says, i := a.says, int(step.who)
	switch {
	case strings.Contains(says, "%d"):
		return fmt.Sprintf(says, i)
	case !strings.Contains(says, "%s"):
		return says
	case strings.Contains(says, "process of %s"):
		return fmt.Sprintf(says, processNames[i])
	}
	text := fmt.Sprintf(says, names[i])
	if cfg.several() {
		return text + after.Several.Calls[i].told(&before.Several.Calls[i])
	}
	was, is := &before.Callers[i], &after.Callers[i]
	if what := outcomeOf(was, is); what != "" && a.at != anywhere {
		text += ": " + what
	}
	if h := heirOf(before, after, is.Grant); h != "" && was.PC == closing {
		text += ": it is handed over to " + h
	}
	if is.Events > was.Events && is.Said != noVerdict {
		text += ": " + verdictNames[is.Said]
	}
	if is.PC == returning {
		text += "; Do returns " + resultNames[is.Res]
	}
	return text
}

// outcomeOf is what a step of a caller led to, if the step does not say so.
func outcomeOf(was, is *Caller) string {
	switch {
	case was.PC == writing && is.PC == written:
		return "written"
	case was.PC == writing && (is.PC == conflicted || is.PC == refused):
		return "refused"
	case was.PC == resolving && is.PC == closing && is.Ended == committed:
		return "committed"
	case was.PC == resolving && (is.PC == closing || is.PC == doubting):
		return "not committed"
	case was.PC == resolving && is.PC == giving:
		return "there is none"
	case was.PC == conflicted && is.Found.Holder != notAsked:
		return holderNames[is.Found.Holder]
	case (was.PC == closing || was.PC == freeing) && is.Pending == saysLost && is.Found.Verdict != saysLost:
		return "it was gone"
	case was.PC < closing && is.PC == closing && is.Ended == rolledBack:
		return "rolled back"
	}
	return ""
}

// heirOf returns who has got the grant in memory.
func heirOf(before, after *State, grant uint8) string {
	for i := range after.Callers {
		if grant != 0 && before.Callers[i].Grant == 0 && after.Callers[i].Grant == grant && owner(i) != grant {
			return names[i]
		}
	}
	return ""
}

var (
	resultNames = [...]string{
		open: "nothing", done: "nil", failed: "an error, nothing was committed", lostLease: "ErrLost", duplicate: "ErrDuplicate", stale: "ErrStale",
		intercepted: "ErrIntercepted", business: "a conflict", unsure: "ErrUnknown", unavailable: "ErrUnavailable", busy: "ErrBusy",
		replayed: "the stored answer", claimed: "ErrBusy: another transaction has the request",
		exists: "ErrExists", raced: "ErrBusy: other callers were faster", hurried: "ErrBusy: its time has ended",
		engaged: "ErrBusy: another caller of its process",
	}
	verdictNames = [...]string{saysOverlap: "overlap", saysLost: "lost", saysUnknown: "unknown commit"}
	holderNames  = [...]string{self: "it has", other: "another has", none: "nobody has"}
)

// told says what an event names, and what Do returns.
func (c *transfer) told(was *transfer) (text string) {
	if c.PC == was.PC {
		return ""
	}
	if c.Told != noVerdict {
		text = fmt.Sprintf(": %s of the %s key", verdictNames[c.Told], keyNames[c.Named-1])
	}
	if c.PC == returned {
		text += "; Do returns " + resultNames[c.Res]
	}
	return text
}

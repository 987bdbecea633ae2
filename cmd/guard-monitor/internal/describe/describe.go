// Package describe renders an event in plain English, for people on call.
//
//	fmt.Println(describe.Event(ev))
package describe

import (
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/belaygo/belay/notify"
)

// Event tells a person on call in plain English what an event means. Text
// from outside, such as the key, is shortened, and quoted where it holds
// anything but ordinary name characters, so that it cannot command a terminal.
func Event(e notify.Event) string {
	var b strings.Builder
	b.WriteString(what(e))
	if e.Count > 1 && !countsOperations(e) {
		b.WriteString(" This happened " + strconv.Itoa(e.Count) + " times in a burst.")
	}
	if s := whose(e); s != "" {
		b.WriteString(" " + s)
	}
	return b.String()
}

// what is the first sentence: what happened, to whom, when.
func what(e notify.Event) string {
	key, who, at := "key "+quote(e.Key), reporter(e), " at "+clock(e.CaughtAt)
	switch e.Verdict {
	case notify.VerdictOverlap:
		return "Two callers wrote under " + key + " at once: the database refused the write of " + who +
			row(e) + at + became(e.Outcome) + "."
	case notify.VerdictLost:
		return "The lock on " + key + " was lost while " + who + " worked under it, noticed" + at +
			lostBecame(e) + "."
	case notify.VerdictUnknownCommit:
		return "Nobody knows whether the work of " + who + " under " + key + row(e) +
			" was committed: the database did not answer the COMMIT" + at + "."
	case notify.VerdictDegraded:
		return degraded(e, who, at)
	case notify.VerdictUnavailable:
		return refused(e, who, at)
	}
	return "An event of unknown verdict " + quote(string(e.Verdict)) + " came from " + who + " for " + key + at + "."
}

// degraded tells of the begin or the end of an outage.
func degraded(e notify.Event, who, at string) string {
	first := ""
	if e.Key != "" {
		first = ", first on key " + quote(e.Key)
	}
	n := strconv.Itoa(e.Count)
	switch {
	case !endsOutage(e):
		return who + " began to work without the lock" + at + " because it could not be asked" + first +
			"; until it can, only the database guards the data."
	case e.Outcome == notify.OutcomeCommitted:
		return who + " can ask the lock again, noticed" + at + "; without it, guarded by the database alone" + first +
			", operations committed: " + n + "."
	}
	return who + " can ask the lock again, noticed" + at + "; without it" + first +
		", operations rolled back: " + n + ", and none is known to be committed."
}

// refused tells of operations whose lock could not be acquired.
func refused(e notify.Event, who, at string) string {
	operations, first := " operations, the first", ""
	if e.Count == 1 {
		operations = " operation"
	}
	if e.Key != "" {
		first = " on key " + quote(e.Key)
	}
	return who + " refused " + strconv.Itoa(e.Count) + operations + at + first +
		", because the lock could not be acquired; nothing was changed."
}

// countsOperations reports whether the first sentence says what the Count counts.
func countsOperations(e notify.Event) bool {
	return endsOutage(e) || e.Verdict == notify.VerdictUnavailable
}

// endsOutage reports whether the event says that the lock can be asked again.
func endsOutage(e notify.Event) bool {
	return e.Verdict == notify.VerdictDegraded && e.Outcome != notify.OutcomeUnknown
}

// whose is the second sentence: whose lock it was, where it was kept, and who
// had it at the conflict.
func whose(e notify.Event) string {
	var parts []string
	if e.Owner != "" {
		lock := "The lock of owner " + name(e.Owner)
		if e.Token != 0 {
			lock += " (token " + strconv.FormatInt(e.Token, 10) + ")"
		}
		if !e.AcquiredAt.IsZero() {
			lock += " was granted at " + clock(e.AcquiredAt)
			if e.TTL > 0 {
				lock += " for " + e.TTL.String()
			}
		}
		parts = append(parts, lock)
	}
	if e.Place != (notify.Place{}) {
		where := "kept on " + place(e.Place)
		if e.Place.Entry != "" {
			where += " as " + name(e.Place.Entry)
		}
		if len(parts) == 0 {
			where = "The lock was " + where
		}
		parts = append(parts, where)
	}
	if s := holder(e); s != "" {
		if len(parts) == 0 {
			s = strings.ToUpper(s[:1]) + s[1:]
		}
		parts = append(parts, s)
	}
	if len(parts) == 0 {
		return ""
	}
	return strings.Join(parts, ", ") + "."
}

func reporter(e notify.Event) string {
	if e.Instance == "" {
		return name(e.Service)
	}
	return name(e.Service) + " (instance " + name(e.Instance) + ")"
}

func row(e notify.Event) string {
	if e.Table == "" {
		return ""
	}
	s := " on table " + name(e.Table)
	if len(e.Index) > 0 {
		columns := make([]string, 0, len(e.Index))
		for _, c := range e.Index[:min(len(e.Index), 8)] {
			columns = append(columns, name(c))
		}
		s += " (" + strings.Join(columns, ", ") + ")"
	}
	if v := e.Versions; v != nil {
		s += ", which expected version " + strconv.FormatInt(v.Expected, 10) +
			" and found " + strconv.FormatInt(v.Found, 10)
	}
	return s
}

// lostBecame tells what a lost lock led to: the database may have had to refuse
// the write of somebody who no longer had it.
func lostBecame(e notify.Event) string {
	if e.Outcome == notify.OutcomeRefused {
		return " when the database refused its write" + row(e) + became(e.Outcome)
	}
	return row(e) + became(e.Outcome)
}

func became(o notify.Outcome) string {
	switch o {
	case notify.OutcomeCommitted:
		return "; its changes were committed"
	case notify.OutcomeRefused, notify.OutcomeRolledBack:
		return "; it was rolled back and changed nothing"
	case notify.OutcomeUnknown:
		return "; whether it changed anything is unknown"
	}
	return ""
}

func holder(e notify.Event) string {
	switch e.HolderAtConflict {
	case notify.HolderSelf:
		return "at the conflict the key was still held by this owner, so somebody wrote without a valid lock"
	case notify.HolderOther:
		if e.HolderOwner == "" {
			return "at the conflict the key was held by another caller"
		}
		return "at the conflict the key was held by owner " + name(e.HolderOwner)
	case notify.HolderNone:
		return "at the conflict nobody held the key"
	case notify.HolderUnknown:
		return "who held the key at the conflict could not be asked"
	}
	return ""
}

func place(p notify.Place) string {
	node := "an unnamed node"
	if p.Node != "" {
		node = name(p.Node)
	}
	if p.Slot < 0 {
		return node
	}
	return node + " (slot " + strconv.Itoa(p.Slot) + ")"
}

// clock keeps the zone in sight: readers mistake one for another.
func clock(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05.000 UTC") }

// name shows ordinary names bare and quotes the rest.
func name(s string) string {
	ordinary := func(r rune) bool {
		return r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || strings.ContainsRune("-_.:/@[]", r)
	}
	if s != "" && len(s) <= maxShown && strings.IndexFunc(s, func(r rune) bool { return !ordinary(r) }) < 0 {
		return s
	}
	return quote(s)
}

// maxShown bounds how many bytes of a foreign text are shown.
const maxShown = 512

// quote escapes everything that is not printable, control characters and
// changes of writing direction among it.
func quote(s string) string {
	if len(s) <= maxShown {
		return strconv.Quote(s)
	}
	cut := maxShown
	for cut > maxShown-utf8.UTFMax && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return strconv.Quote(s[:cut]) + "..."
}

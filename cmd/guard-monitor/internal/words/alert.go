package words

import (
	"fmt"
	"strings"
	"time"

	"github.com/belaygo/belay/cmd/guard-monitor/internal/incident"
	"github.com/belaygo/belay/cmd/guard-monitor/internal/text"
)

// Alerts are in English.

// Summary is the first line of an alert. It begins with the effect on data, which
// people who are woken look for first, and with operations that are refused. It is no
// surer of the cause than its evidence. Service is the name as it is shown.
func Summary(service string, i *incident.Incident) string {
	if i.MergedInto != "" {
		return service + ": now part of another incident"
	}
	says := because(i)
	if i.Current().Refused > 0 {
		says = English.Headline(*i)
	}
	if effect := headline(i.Current()); effect != "" {
		says = effect + "; " + says
	}
	return service + ": " + says
}

// headline is the worst of an effect on data in a few words, "" if there is none to speak of.
func headline(e incident.Effect) string {
	switch {
	case e.Unknown == 1:
		return "look at 1 operation"
	case e.Unknown > 0:
		return fmt.Sprintf("look at these %s operations", grouped(e.Unknown))
	case e.Committed == 1:
		return "1 operation was committed though its lock was lost"
	case e.Committed > 0:
		return operations(e.Committed) + " were committed though their lock was lost"
	case e.Without > 0:
		return "the database alone guarded " + operations(e.Without)
	case e.Undone > 0 && e.Refused == 0:
		return "nothing was changed"
	}
	return ""
}

// operations is how many operations there are, in English.
func operations(n int64) string {
	if n == 1 {
		return "1 operation"
	}
	return grouped(n) + " operations"
}

// Description says in one line what is known of an incident.
func Description(i *incident.Incident) string {
	var parts []string
	if effect := EffectLine(i.Current()); effect != "" {
		parts = append(parts, text.Line(effect))
	}
	parts = append(parts, fmt.Sprintf("cause %s, confidence %s, state %s", i.Cause, i.Confidence, i.State))
	if i.Events > 0 {
		parts = append(parts, counts(i))
	}
	if i.Regressed > 0 {
		parts = append(parts, "came back "+English.count(int64(i.Regressed), "time"))
	}
	if i.AckedBy != "" {
		parts = append(parts, "acknowledged by "+text.Line(i.AckedBy))
	}
	if i.MergedInto != "" {
		parts = append(parts, "now part of incident "+text.Line(i.MergedInto))
	}
	return strings.Join(parts, "; ")
}

// counts says how many failures, events and keys there are. What did not fail is
// no failure.
func counts(i *incident.Incident) string {
	says := English.count(i.Events, "event") + " on " + English.count(i.Keys, "key")
	if i.Effect.Failures > 0 {
		says = English.count(i.Effect.Failures, "failure") + " in " + says
	}
	return says
}

// EffectLine is what became of an incident's operations in one English text, "" if
// there is nothing to say.
func EffectLine(e incident.Effect) string { return strings.Join(English.Effect(e), ". ") }

// EvidenceLines is the evidence of an incident, a line for each row.
func EvidenceLines(i *incident.Incident) string {
	lines := make([]string, 0, len(i.Evidence))
	for _, e := range i.Evidence {
		says := English.Evidence(e)
		at := clock(e.At)
		if !sameDay(e.At, i.LastAt) {
			at = moment(e.At)
		}
		line := at + " " + text.Line(says)
		if e.Node != "" && !strings.Contains(says, e.Node) {
			line += " (" + text.Line(e.Node) + ")"
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// sameDay reports whether two times have the same date, or one is not known.
func sameDay(a, b time.Time) bool {
	const date = "2006-01-02"
	return a.IsZero() || b.IsZero() || a.UTC().Format(date) == b.UTC().Format(date)
}
